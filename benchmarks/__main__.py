"""Measures parts of the library: python -m benchmarks [PART …] [--quick]."""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

from benchmarks.report import RESULTS, Table, closing_sentence, print_table, write_atomically

PARTS = {
    "speed": ("features.transform_speed", "features.routine_speed", "features.degrees_speed"),
    "accuracy": ("features.polynomial_accuracy", "features.accuracy"),
    "memory": ("features.memory", "features.file_streams"),
    "house": ("house.hops", "house.import_time"),
    "reproductions": ("features.reproductions", "features.classification"),
    "solvers": ("solvers.accuracy", "solvers.speed", "solvers.algorithm_2"),
    "ridge": ("ridge.row_sketch", "ridge.memory", "ridge.path", "ridge.prediction"),
    "certificates": ("certificates.coverage", "certificates.automatic_sizes"),
    "large": ("large.images", "large.streams", "large.exact", "large.choices"),
    "dask": ("dask.two_processes", "dask.failures", "dask.scaling"),
    "models": ("models.regressions", "models.classifications", "models.keel"),
    "comparisons": (
        "comparisons.power_methods_speed",
        "comparisons.methods",
        "comparisons.table1",
        "comparisons.published",
    ),
}
MODULES = tuple(chain.from_iterable(PARTS.values()))
WITHOUT_IMAGES = ("speed", "accuracy", "memory", "house", "dask", "comparisons")


def main() -> None:
    arguments = parsed_arguments()
    modules = chosen_modules(arguments.parts)
    try:
        check_data(modules)
        run(modules, quick=arguments.quick)
    except ModuleNotFoundError as error:
        sys.exit(f'{error.name} is not installed: run  pip install "powersketch[bench]"')


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = [*PARTS, *MODULES]
    parser.add_argument(
        "parts", nargs="*", choices=[*names, []], metavar="PART", help=", ".join(names)
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round and one seed each; the results are not kept"
    )
    return parser.parse_args()


def chosen_modules(parts: list[str]) -> list[str]:
    """Return the modules of the parts, which are single modules or names of several."""
    unknown = set(parts) - {*PARTS, *MODULES}
    if unknown:
        known = ", ".join([*PARTS, *MODULES])
        sys.exit(f"there is no part {', '.join(sorted(unknown))}; allowed are {known}")
    return list(chain.from_iterable(PARTS.get(part, (part,)) for part in parts or PARTS))


def check_data(modules: list[str]) -> None:
    """Say now that a data set is missing, rather than after everything else was measured."""
    from benchmarks.data import check_fashion_mnist, fetch_packages, fetch_tables

    try:
        if not set(modules) <= set(chosen_modules(list(WITHOUT_IMAGES))):
            check_fashion_mnist()
        if "ridge.prediction" in modules:
            fetch_packages()
        if not set(modules).isdisjoint(PARTS["models"]):
            fetch_tables()
    except FileNotFoundError as error:
        sys.exit(str(error))


def run(modules: list[str], *, quick: bool) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 140)
    every: list[Table] = []
    for module in modules:
        tables = []
        for table in measured_tables(module, quick=quick):
            print_table(console, table)
            tables.append(table)
        if not quick:
            keep(module, tables)
        every += tables
    console.print(f"\n{closing_sentence(every)}")
    if not quick:
        console.print(
            f"Kept in {os.path.relpath(RESULTS)}; `make readme` shows them in README.md and docs."
        )


def measured_tables(module: str, *, quick: bool) -> Iterator[Table]:
    for measurement in importlib.import_module(f"benchmarks.{module}").MEASUREMENTS:
        print(f"measuring {measurement.__name__.replace('_', ' ')} …", flush=True)
        yield measurement(quick=quick)


def keep(module: str, tables: list[Table]) -> None:
    """Put the tables of a module in the place of its earlier ones."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results[module] = {"machine": machine(), "tables": [table.as_json() for table in tables]}
    text = json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False)
    write_atomically(RESULTS, text + "\n")


def machine() -> dict[str, Any]:
    import numpy
    import sklearn

    from powersketch import _native

    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "instruction set": _native.instruction_set(),
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def processor() -> str:
    """Return the processor's name where the system tells it, else its architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.machine()


if __name__ == "__main__":
    main()
