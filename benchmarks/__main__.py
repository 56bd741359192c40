"""Measures parts of the library: python -m benchmarks [PART …] [--quick]."""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
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
    "large": (
        "large.images",
        "large.tables",
        "large.streams",
        "large.exact",
        "large.growth",
        "large.choices",
    ),
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
    chosen = chosen_parts(arguments.parts)
    try:
        check_data(list(chosen))
        run(chosen, quick=arguments.quick)
    except ModuleNotFoundError as error:
        sys.exit(f'{error.name} is not installed: run  pip install "powersketch[bench]"')


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = [*PARTS, *MODULES]
    help_of_parts = f"{', '.join(names)}, or one measurement of these, such as large.growth.growth"
    parser.add_argument("parts", nargs="*", metavar="PART", help=help_of_parts)
    parser.add_argument(
        "--quick", action="store_true", help="one round and one seed each; the results are not kept"
    )
    return parser.parse_args()


def chosen_parts(parts: list[str]) -> dict[str, str]:
    """Return the modules of the parts, and of each the measurement that was named, if one was."""
    chosen: dict[str, str] = {}
    for part in parts or PARTS:
        module, _, measurement = part.rpartition(".")
        if part in PARTS or part in MODULES:
            chosen |= dict.fromkeys(PARTS.get(part, (part,)), "")
        elif module in MODULES and measurement in {m.__name__ for m in measurements(module)}:
            chosen[module] = measurement
        else:
            known = ", ".join([*PARTS, *MODULES])
            sys.exit(f"there is no part {part}; allowed are {known}, and measurements of these")
    return chosen


def measurements(module: str) -> Sequence[Callable[..., Table]]:
    measured: Sequence[Callable[..., Table]] = importlib.import_module(
        f"benchmarks.{module}"
    ).MEASUREMENTS
    return measured


def check_data(modules: list[str]) -> None:
    """Say now that a data set is missing, rather than after everything else was measured."""
    from benchmarks.data import check_fashion_mnist, fetch_packages, fetch_tables

    try:
        if not set(modules) <= set(chosen_parts(list(WITHOUT_IMAGES))):
            check_fashion_mnist()
        if "ridge.prediction" in modules:
            fetch_packages()
        if not set(modules).isdisjoint({*PARTS["models"], "large.tables", "large.exact"}):
            fetch_tables()
    except FileNotFoundError as error:
        sys.exit(str(error))


def run(chosen: dict[str, str], *, quick: bool) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 140)
    every: list[Table] = []
    for module, only in chosen.items():
        tables = []
        for table in measured_tables(module, only, quick=quick):
            print_table(console, table)
            tables.append(table)
        if not quick:
            keep(module, tables, alone=not only)
        every += tables
    console.print(f"\n{closing_sentence(every)}")
    if not quick:
        console.print(
            f"Kept in {os.path.relpath(RESULTS)}; `make readme` shows them in README.md and docs."
        )


def measured_tables(module: str, only: str, *, quick: bool) -> Iterator[Table]:
    for measurement in measurements(module):
        if only not in ("", measurement.__name__):
            continue
        print(f"measuring {measurement.__name__.replace('_', ' ')} …", flush=True)
        yield measurement(quick=quick)


def keep(module: str, tables: list[Table], *, alone: bool) -> None:
    """Put the tables of a module in the place of its earlier ones, or of those of their titles."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    earlier = [] if alone else results.get(module, {"tables": []})["tables"]
    by_title = {table["title"]: table for table in earlier}
    here = {"machine": machine()}
    by_title |= {table.title: table.as_json() | here for table in tables}
    results[module] = {"tables": list(by_title.values())}
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
