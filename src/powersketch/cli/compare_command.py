"""The command ``powersketch compare``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from powersketch.cli.options import Debug, bytes_of, integer, listed, with_numbers
from powersketch.cli.outputs import check_outputs

if TYPE_CHECKING:
    from powersketch.arrays import Rows
    from powersketch.comparison import Comparison

_NOTHING_MEASURED = 2
_INTERRUPTED = 130
_KERNEL = "Kernel"
_METHODS = "What is compared"
_OUTPUT = "Output"


class KernelName(StrEnum):
    """The kernels that have names."""

    POLYNOMIAL = "polynomial"
    GAUSSIAN = "gaussian"
    ARC_COSINE = "arc-cosine"
    NEURAL_TANGENT = "neural-tangent"


def compare_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Rows of numbers: .npy, .npz, .csv, .tsv, .svm, .libsvm, .svmlight, .mtx or "
            ".parquet.",
        ),
    ],
    kernel: Annotated[
        KernelName, typer.Option(help="Which kernel.", rich_help_panel=_KERNEL)
    ] = KernelName.POLYNOMIAL,
    degree: Annotated[
        int | None,
        typer.Option(
            help="Degree of the polynomial kernel, 2 if not given.", rich_help_panel=_KERNEL
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            help='Factor of inner products or squared distances, or "scale" for 1 / (columns · '
            "variance). 1 for the polynomial kernel if not given, scale for the Gaussian one.",
            rich_help_panel=_KERNEL,
        ),
    ] = None,
    coef0: Annotated[
        float | None,
        typer.Option(
            help="Constant term of the polynomial kernel, 0 if not given.", rich_help_panel=_KERNEL
        ),
    ] = None,
    order: Annotated[
        int | None,
        typer.Option(
            help="Order of the arc-cosine kernel, 1 if not given.", rich_help_panel=_KERNEL
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Layers of the arc-cosine or neural tangent kernel, 1 if not given.",
            rich_help_panel=_KERNEL,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas; all that can do the kernel if not given.",
            rich_help_panel=_METHODS,
        ),
    ] = None,
    components: Annotated[
        str,
        typer.Option(help="Numbers of features, separated by commas.", rich_help_panel=_METHODS),
    ] = "128,256,512,1024",
    seeds: Annotated[
        int, typer.Option(help="How many draws are measured.", rich_help_panel=_METHODS)
    ] = 3,
    rows: Annotated[
        int,
        typer.Option(
            help="Size of the pilot: half of it is measured, and as many others are fitted on.",
            rich_help_panel=_METHODS,
        ),
    ] = 2000,
    normalize: Annotated[
        bool,
        typer.Option("--normalize", help="Scale rows to norm one.", rich_help_panel=_METHODS),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            help="Name or number of a column to leave out; numbers begin at 0.",
            rich_help_panel=_METHODS,
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether the first row of a .csv or .tsv file holds names; found out if not "
            "given.",
            rich_help_panel=_METHODS,
        ),
    ] = None,
    budget_seconds: Annotated[
        float | None,
        typer.Option(
            help="What the transform of all rows may take: for the recommendation.",
            rich_help_panel=_METHODS,
        ),
    ] = None,
    budget_memory: Annotated[
        str | None,
        typer.Option(
            help="The same for memory, in bytes or with a unit, such as 500M or 2G.",
            rich_help_panel=_METHODS,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Gives the same rows and draws again.", rich_help_panel=_METHODS),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Threads, -1 for all processors.", rich_help_panel=_METHODS)
    ] = 1,
    html: Annotated[
        Path | None,
        typer.Option(
            help="The page; FILE's name with -comparison.html in the working directory if not "
            "given.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="All figures as JSON.", rich_help_panel=_OUTPUT),
    ] = None,
    debug: Debug = False,
) -> int:
    """Measure every way to approximate a kernel on the rows of a file.

    Prints a table of errors, times and memory, names the best method, and writes one HTML page
    with all figures.
    """
    page = Path(f"{file.stem}-comparison.html") if html is None else html
    check_outputs([file], [page, json_file])
    given = {"degree": degree, "gamma": gamma, "coef0": coef0, "order": order, "depth": depth}
    parameters = {name: value for name, value in given.items() if value is not None}
    options = {
        "methods": None if methods is None else listed(methods),
        "components": [integer("components", text) for text in listed(components)],
        "seeds": seeds,
        "pilot_rows": rows,
        "time_budget": budget_seconds,
        "memory_budget": None if budget_memory is None else bytes_of(budget_memory),
        "random_state": seed,
        "n_jobs": jobs,
    }
    X = _rows(file, target, header, normalize)
    comparison = _compared(X, kernel.value, with_numbers(parameters), options)
    try:
        _show(comparison)
    finally:
        # What took minutes to find is kept even where nobody reads the table to its end.
        _write(comparison, page, json_file)
    if not comparison.complete:
        return _INTERRUPTED
    return _NOTHING_MEASURED if all(found.failed for found in comparison.measurements) else 0


def _rows(file: Path, target: str | None, header: bool | None, normalize: bool) -> Rows:
    # Here and below, what takes long to load is loaded when it is needed: help is to be quick.
    from powersketch.cli.files import read_rows
    from powersketch.cli.unit_rows import unit_rows

    X = read_rows(file, target, header)
    return unit_rows(file, X) if normalize else X


def _compared(
    X: Rows, name: str, parameters: dict[str, Any], options: dict[str, Any]
) -> Comparison:
    """Compare with a progress bar on standard error."""
    from powersketch.accuracy import DataRows
    from powersketch.comparison import compare
    from powersketch.kernels import as_kernel

    kernel = as_kernel(name, DataRows.of(X).matrix, **parameters)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("exact kernel", total=None)

        def callback(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

        return compare(X, kernel, callback=callback, **options)


def _show(comparison: Comparison) -> None:
    from powersketch.cli.printing import print_comparison

    print_comparison(comparison)


def _write(comparison: Comparison, page: Path, json_file: Path | None) -> None:
    from powersketch.comparison import replaced

    comparison.save_html(page)
    if json_file is not None:
        with replaced(json_file) as unfinished:
            figures = json.dumps(comparison.to_dict(), indent=1, allow_nan=False)
            unfinished.write_text(figures, encoding="utf-8")
    typer.echo(f"The page is {page}.")
    if json_file is not None:
        typer.echo(f"The figures are in {json_file}.")
