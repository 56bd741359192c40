"""The command ``powersketch compare``."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from powersketch.cli import Debug
from powersketch.exceptions import InputError

if TYPE_CHECKING:
    from powersketch.arrays import Rows
    from powersketch.comparison import Comparison

_NOTHING_MEASURED = 2
_INTERRUPTED = 130
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# A file or a pipe has no width that a table has to fit.
_WIDEST = 1000
# The columns that narrow terminals do without, in this order.
_LEAST_NEEDED = ("transform", "kind", "fit", "pencil", "memory", "operator")

_kernel_option = partial(typer.Option, rich_help_panel="Kernel")
_method_option = partial(typer.Option, rich_help_panel="What is compared")
_output_option = partial(typer.Option, rich_help_panel="Output")


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
        str,
        _kernel_option(
            help="Which kernel: linear, polynomial (poly), gaussian (rbf), arc-cosine, "
            "neural-tangent (ntk) or dot-product."
        ),
    ] = "polynomial",
    degree: Annotated[
        int | None, _kernel_option(help="Degree of the polynomial kernel, 2 if not given.")
    ] = None,
    gamma: Annotated[
        str | None,
        _kernel_option(
            help='Factor of inner products or squared distances, or "scale" for 1 / (columns · '
            'variance), or "median" for 1 / (median squared distance). 1 for the polynomial kernel '
            "if not given, scale for the Gaussian one.",
        ),
    ] = None,
    coef0: Annotated[
        float | None, _kernel_option(help="Constant term of the polynomial kernel, 0 if not given.")
    ] = None,
    order: Annotated[
        int | None, _kernel_option(help="Order of the arc-cosine kernel, 1 if not given.")
    ] = None,
    depth: Annotated[
        int | None,
        _kernel_option(help="Layers of the arc-cosine or neural tangent kernel, 1 if not given."),
    ] = None,
    methods: Annotated[
        str | None,
        _method_option(
            help="Methods, separated by commas; all that can do the kernel if not given."
        ),
    ] = None,
    components: Annotated[
        str, _method_option(help="Numbers of features, separated by commas.")
    ] = "128,256,512,1024",
    seeds: Annotated[int, _method_option(help="How many draws are measured.")] = 3,
    rows: Annotated[
        int,
        _method_option(
            help="Size of the pilot: half of it is measured, and as many others are fitted on."
        ),
    ] = 2000,
    normalize: Annotated[bool, _method_option("--normalize", help="Scale rows to norm 1.")] = False,
    target: Annotated[
        str | None,
        _method_option(help="Name or number of a column to leave out; numbers begin at 0."),
    ] = None,
    header: Annotated[
        bool | None,
        _method_option(
            "--header/--no-header",
            help="Whether the first row of a .csv or .tsv file holds names; detected if not given.",
        ),
    ] = None,
    budget_seconds: Annotated[
        float | None,
        _method_option(help="What the transform of all rows may take: for the recommendation."),
    ] = None,
    budget_memory: Annotated[
        str | None,
        _method_option(help="The same for memory, in bytes or with a unit, such as 500M or 2G."),
    ] = None,
    seed: Annotated[int | None, _method_option(help="Gives the same rows and draws again.")] = None,
    jobs: Annotated[int, _method_option(help="Threads, -1 for all processors.")] = 1,
    html: Annotated[
        Path | None,
        _output_option(
            help="The page; FILE's name with -comparison.html in the working directory if not "
            "given.",
        ),
    ] = None,
    json_file: Annotated[Path | None, _output_option("--json", help="All figures as JSON.")] = None,
    debug: Debug = False,
) -> int:
    """Measure every way to approximate a kernel on the rows of a file.

    Prints a table of errors, times and memory, names the best method, and writes one HTML page
    with all figures.
    """
    # Here and below, what takes long to load is loaded when it is needed: help is to be quick.
    from powersketch.files import check_outputs, read_rows

    page = Path(f"{file.stem}-comparison.html") if html is None else html
    check_outputs([file], [page, json_file])
    kernel_options = {
        "degree": degree,
        "gamma": None if gamma is None else _gamma(gamma),
        "coef0": coef0,
        "order": order,
        "depth": depth,
    }
    options = {
        "methods": None if methods is None else _parts(methods),
        "components": [_integer("components", text) for text in _parts(components)],
        "seeds": seeds,
        "pilot_rows": rows,
        "time_budget": budget_seconds,
        "memory_budget": None if budget_memory is None else bytes_from(budget_memory),
        "random_state": seed,
        "n_jobs": jobs,
    }
    X = read_rows(file, target, header)
    if normalize:
        X = _normalized(file, X)
    given = {name: value for name, value in kernel_options.items() if value is not None}
    comparison = replace(_compare(X, kernel, given, options), data_name=file.name)
    try:
        _print(comparison)
    finally:
        # Results of minutes of work are kept even where nobody reads the table to its end.
        _write(comparison, page, json_file)
    if not comparison.complete:
        return _INTERRUPTED
    return 0 if comparison.successes else _NOTHING_MEASURED


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{name} has {text!r}, which is no whole number; allowed are numbers of at least 1, "
            "separated by commas: give for instance 128,512."
        ) from None


def _gamma(text: str) -> float | str:
    if text in ("scale", "median"):
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"gamma={text} is neither a number nor scale nor median: give for instance 0.5."
        ) from None


def bytes_from(text: str) -> int:
    """Return a number of bytes from a number with a unit.

    Examples
    --------
    >>> from powersketch.cli.compare_command import bytes_from
    >>> bytes_from("1.5G")
    1610612736
    """
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    number = stripped.rstrip("KMGT")
    unit = stripped[len(number) :]
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise InputError(
            f"budget-memory={text} is no amount of memory: give bytes, or a number with K, M, G or "
            "T, such as 500M."
        ) from None


def _normalized(file: Path, X: Rows) -> Rows:
    """Return the rows at norm one; rows of zeros stay what they are.

    Rows whose squares are too large or too small for their type of numbers would become zero, or
    keep their norm: they are refused.
    """
    import numpy as np
    from sklearn.preprocessing import normalize

    unit_rows = normalize(X)
    squares = np.asarray((unit_rows * unit_rows).sum(axis=1), dtype=np.float64).ravel()
    filled = np.asarray((abs(X) > 0).sum(axis=1)).ravel() > 0
    failed = np.flatnonzero((np.abs(squares - 1.0) > 0.01) & filled)
    if failed.size:
        raise InputError(
            f"{file.name}, row {failed[0] + 1}: its norm is too large or too small to be computed; "
            "bring the entries near 1, for instance by other units, or do without --normalize."
        )
    return unit_rows


def _compare(
    X: Rows, name: str, kernel_options: dict[str, Any], options: dict[str, Any]
) -> Comparison:
    """Compare with a progress bar on standard error."""
    from powersketch.comparison import compare
    from powersketch.kernels import as_kernel

    kernel = as_kernel(name, **kernel_options)
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


def _print(comparison: Comparison) -> None:
    """Print the table, the notes, and the best method within the budget."""
    from powersketch.comparison import best_line, remaining_lines, title

    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDEST)
    table, left_out = _fitting_table(comparison, console)
    console.print(title(comparison), highlight=False, markup=False, soft_wrap=True)
    console.print(table)
    lines = [*remaining_lines(comparison), f"Best: {best_line(comparison)}"]
    if left_out:
        lines.insert(0, f"Not shown for want of room: {', '.join(left_out)}.")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _fitting_table(comparison: Comparison, console: Console) -> tuple[Table, tuple[str, ...]]:
    """Return a table with as many columns as there is room for, and the names of the others."""
    unlimited = console.options.update(width=_WIDEST)
    for count in range(len(_LEAST_NEEDED) + 1):
        left_out = _LEAST_NEEDED[:count]
        table = _table(comparison, left_out)
        if Measurement.get(console, unlimited, table).maximum <= console.width:
            break
    return table, left_out


def _table(comparison: Comparison, left_out: tuple[str, ...]) -> Table:
    from powersketch.comparison import TEXT_HEADINGS, headings, table_rows

    table = Table()
    names = headings(comparison)
    shown = [number for number, heading in enumerate(names) if heading not in left_out]
    for number in shown:
        text = names[number] in TEXT_HEADINGS
        table.add_column(names[number], justify="left" if text else "right", no_wrap=True)
    for position, row in enumerate(table_rows(comparison)):
        if row.best and position:
            table.add_section()
        cells = [row.cells[number] for number in shown]
        table.add_row(*cells, style="bold" if row.best else None)
    return table


def _write(comparison: Comparison, page: Path, json_file: Path | None) -> None:
    from powersketch.files import atomic_write

    comparison.save_html(page)
    if json_file is not None:
        with atomic_write(json_file) as temporary:
            figures = json.dumps(comparison.to_dict(), indent=1, allow_nan=False)
            temporary.write_text(figures, encoding="utf-8")
    typer.echo(f"The page is {page}.")
    if json_file is not None:
        typer.echo(f"The figures are in {json_file}.")
