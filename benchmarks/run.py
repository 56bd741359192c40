"""Runs the benchmarks, prints their tables and writes them to benchmarks/results."""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from itertools import chain

PARTS = {
    "speed": ("speed", "kernel_speed", "degrees_speed", "gaussian_speed"),
    "accuracy": ("accuracy", "kernel_accuracy"),
    "memory": ("memory",),
    "import": ("import_time",),
    "reproductions": ("reproductions", "classification"),
    "solvers": ("solver_accuracy", "solver_speed", "algorithm_2"),
    "ridge": ("ridge_row_sketch", "ridge_memory", "ridge_path", "ridge_prediction"),
    "certificates": ("certificates", "automatic_sizes"),
    "comparison": ("power_methods_speed", "comparison", "table1", "published"),
}
WITHOUT_IMAGES = ("speed", "accuracy", "memory", "import", "comparison")


def main() -> None:
    arguments = parsed_arguments()
    parts = [arguments.only] if arguments.only else list(PARTS)
    try:
        check_data(parts)
        run(parts, quick=arguments.quick)
    except ModuleNotFoundError as error:
        sys.exit(f'{error.name} is not installed: run  pip install "powersketch[bench]"')


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="run one part")
    parser.add_argument("--quick", action="store_true", help="one round and one seed each")
    return parser.parse_args()


def check_data(parts: list[str]) -> None:
    """Say now that a data set is missing, rather than after everything else was measured."""
    from data import check_fashion_mnist, fetch_packages

    try:
        if not set(parts) <= set(WITHOUT_IMAGES):
            check_fashion_mnist()
        if "ridge" in parts:
            fetch_packages()
    except FileNotFoundError as error:
        sys.exit(str(error))


def run(parts: list[str], *, quick: bool) -> None:
    from report import RESULTS, closing_sentence, print_table
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 140)
    tables = {part: [] for part in parts}
    for part in parts:
        for table in measured_tables(part, quick=quick):
            print_table(console, table)
            tables[part].append(table)
    sentence = closing_sentence(list(chain.from_iterable(tables.values())))
    write_results(tables, sentence, quick=quick)
    console.print(f"\n{sentence}\nWritten: latest.json and latest.md in {os.path.relpath(RESULTS)}")


def write_results(tables: dict[str, list], sentence: str, *, quick: bool) -> None:
    from report import RESULTS, markdown, write_atomically

    parts = {part: [table.as_json() for table in found] for part, found in tables.items()}
    results = {"machine": machine(), "quick": quick, "parts": parts}
    write_atomically(RESULTS / "latest.json", json.dumps(results, indent=2, ensure_ascii=False))
    machine_line = ", ".join(f"{key} {value}" for key, value in machine().items())
    heading = f"# Benchmark results\n\n{machine_line}. {sentence}\n"
    sections = map(markdown, chain.from_iterable(tables.values()))
    write_atomically(RESULTS / "latest.md", "\n".join([heading, *sections]))


def measured_tables(part: str, *, quick: bool) -> Iterator:
    for module in PARTS[part]:
        for measurement in importlib.import_module(module).MEASUREMENTS:
            print(f"measuring {measurement.__name__.replace('_', ' ')} …", flush=True)
            yield measurement(quick=quick)


def machine() -> dict[str, str | int]:
    import numpy
    import sklearn

    from powersketch import _native

    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "instruction set": _native.instruction_set(),
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
    }


if __name__ == "__main__":
    main()
