"""The command ``powersketch compare``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from powersketch.cli import options as given_as
from powersketch.cli.console import WIDEST, print_json, print_lines, progress, result_console
from powersketch.cli.option_groups import DataOptions, KernelOptions
from powersketch.cli.options import output_option
from powersketch.exceptions import InputError

if TYPE_CHECKING:
    from powersketch.arrays import Rows
    from powersketch.cli.data import Data
    from powersketch.comparison import Comparison
    from powersketch.kernels import Kernel

_NOTHING_MEASURED = 1
_INTERRUPTED = 130
# The columns that narrow terminals do without, in this order.
_LEAST_NEEDED = ("transform", "kind", "fit", "pencil", "memory", "operator")

_method_option = partial(typer.Option, rich_help_panel="What is compared")


def compare_command(
    file: given_as.DataFile,
    target: Annotated[
        str | None,
        _method_option(
            help="Name or number (from 0) of a column to predict: methods are then compared by "
            "their predictions, too."
        ),
    ] = None,
    task: Annotated[
        str, _method_option(help="regression, classification, or auto: by the values.")
    ] = "auto",
    kernel: KernelOptions = KernelOptions(),
    methods: Annotated[
        str | None,
        _method_option(
            help="Methods, separated by commas; all that can do the kernel if not given."
        ),
    ] = None,
    components: Annotated[
        str,
        _method_option(
            "--components", "--n-components", help="Numbers of features, separated by commas."
        ),
    ] = "128,256,512,1024",
    seeds: Annotated[int, _method_option(help="How many draws are measured.")] = 3,
    pilot_rows: Annotated[
        int,
        _method_option(
            "--rows",
            help="Size of the pilot: half of it is measured, and as many others are fitted on.",
        ),
    ] = 2000,
    alpha: Annotated[
        float | None,
        _method_option(help="What is added to the diagonal in spectral comparisons."),
    ] = None,
    normalize: Annotated[bool, _method_option("--normalize", help="Scale rows to norm 1.")] = False,
    scale: Annotated[
        bool, _method_option("--scale", help="Scale columns to equal spread.")
    ] = False,
    data: DataOptions = DataOptions(),
    budget_seconds: Annotated[
        float | None,
        _method_option(help="What the transform of all rows may take: for the recommendation."),
    ] = None,
    budget_memory: Annotated[
        str | None,
        _method_option(help="The same for memory, in bytes or with a unit, such as 500M or 2G."),
    ] = None,
    seed: given_as.Seed = None,
    jobs: given_as.Jobs = None,
    report: Annotated[
        Path | None,
        output_option(
            help="The page; FILE's name with -comparison.html in the working directory if not "
            "given.",
        ),
    ] = None,
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> int:
    """Measure every way to approximate a kernel on the rows of a file.

    Prints a table of errors, times and memory, names the best method, with code to paste, and
    writes one HTML page with all figures. With a target, predictions are measured as well, beside
    those of a linear model and of gradient boosting.

    Example: powersketch compare diamonds.csv --target price --kernel rbf --scale
    """
    # Here and below, what takes long to load is loaded when it is needed: help is to be quick.
    from powersketch.files import check_outputs

    path = Path(file)
    page = report or Path(f"{path.stem}-comparison.html")
    check_outputs([path], [page])
    exact = kernel.exact()
    options = {
        "task": task,
        "methods": None if methods is None else given_as.parts_of(methods),
        "components": [
            given_as.integer("components", text) for text in given_as.parts_of(components)
        ],
        "seeds": seeds,
        "pilot_rows": pilot_rows,
        "alpha": alpha,
        "time_budget": budget_seconds,
        "memory_budget": None
        if budget_memory is None
        else given_as.bytes_from("budget-memory", budget_memory),
        "random_state": seed,
        "n_jobs": jobs,
    }
    used = data.load(path, () if target is None else (target,)).numbers()
    used = replace(used, X=_scaled(path, used.X, rows=normalize, columns=scale))
    comparison = replace(_compare(used, exact, options), data_name=path.name)
    try:
        if as_json:
            print_json(comparison.to_dict())
        else:
            _print(comparison)
    finally:
        # Results of minutes of work are kept even where nobody reads the table to its end.
        comparison.save_html(page)
    if not as_json:
        print_lines([f"The page is {page}."])
    if not comparison.complete:
        return _INTERRUPTED
    return 0 if comparison.successes else _NOTHING_MEASURED


def _scaled(file: Path, X: Rows, *, rows: bool, columns: bool) -> Rows:
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    from powersketch.arrays import is_sparse

    if columns:
        scaler = MaxAbsScaler() if is_sparse(X) else StandardScaler()
        X = scaler.fit_transform(X)
    return _normalized(file, X) if rows else X


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


def _compare(data: Data, kernel: Kernel, options: dict[str, Any]) -> Comparison:
    """Compare with a progress bar on standard error."""
    from powersketch.comparison import compare

    with progress("exact kernel") as bar:
        return compare(data.X, kernel, y=data.y, callback=bar, **options)


def _print(comparison: Comparison) -> None:
    """Print the table, the notes, the best method within the budget, and its code."""
    from powersketch.comparison import best_code, best_line, remaining_lines, title

    console = result_console()
    table, left_out = _fitting_table(comparison, console)
    print_lines([title(comparison)], console)
    console.print(table)
    lines = [*remaining_lines(comparison), f"Best: {best_line(comparison)}"]
    if left_out:
        lines.insert(0, f"Not shown for want of room: {', '.join(left_out)}.")
    code = best_code(comparison)
    print_lines([*lines, *([code] if code else [])], console)


def _fitting_table(comparison: Comparison, console: Console) -> tuple[Table, tuple[str, ...]]:
    """Return a table with as many columns as there is room for, and the names of the others."""
    unlimited = console.options.update(width=WIDEST)
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
