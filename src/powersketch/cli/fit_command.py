"""The command ``powersketch fit``: the automatic model, a report, and the model in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines, print_table, progress, shown_warnings
from powersketch.cli.option_groups import DataOptions
from powersketch.cli.options import data_option, model_option, output_option
from powersketch.exceptions import InputError

if TYPE_CHECKING:
    from powersketch.cli.data import Data
    from powersketch.reports import ModelReport

# What the report leaves to do: fits and figures, of which the library tells four, and the last fit.
_STEPS = 5


def fit_command(
    file: given_as.DataFile,
    target: Annotated[
        list[str],
        data_option(
            help="Name or number (from 0) of the column to predict; may be repeated for numbers."
        ),
    ],
    data: DataOptions = DataOptions(),
    weight: Annotated[
        str | None, data_option(help="Name or number of a column of weights of the rows.")
    ] = None,
    categorical: Annotated[
        str | None,
        data_option(help="Columns whose numbers are names of categories, separated by commas."),
    ] = None,
    task: Annotated[
        str,
        model_option(help="regression, classification, or auto: by the values of the target."),
    ] = "auto",
    kernel: Annotated[
        str, model_option(help="auto, or the name of a kernel as for the other commands.")
    ] = "auto",
    features: Annotated[
        str,
        model_option(help="auto, exact, landmarks, sketch or row-sketch."),
    ] = "auto",
    n_components: Annotated[
        int | None, model_option(help="Number of features; chosen if not given.")
    ] = None,
    alpha: Annotated[str, model_option(help="The penalty: a number, loo or gcv.")] = "loo",
    settings: given_as.Settings = None,
    seed: given_as.Seed = None,
    jobs: given_as.Jobs = None,
    held_out: Annotated[
        float, model_option(help="Share of rows that the report is measured on.")
    ] = 0.2,
    dask: Annotated[
        str | None,
        model_option(
            help="local, or the address of a Dask scheduler (tcp://host:8786): workers read a "
            ".csv, .tsv or .parquet file block by block, and the report is that of a sample of up "
            "to 65,536 rows."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        output_option(
            help="The file of the fitted model; FILE's name with .model in the working directory "
            "if not given."
        ),
    ] = None,
    keep_sums: Annotated[
        bool,
        output_option(
            "--keep-sums",
            help="Store what standard deviations of predictions need, too: a larger file.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        output_option(
            help="The page; FILE's name with -report.html in the working directory if not given."
        ),
    ] = None,
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Fit a model that chooses for itself, and report how good it is.

    Columns may be numbers, categories, dates, and have gaps. The model is measured on rows that it
    has not seen, beside a linear model and gradient boosting; then it is fitted to all rows.

    Example: powersketch fit diamonds.csv --target price
    """
    # Here and below, what takes long to load is loaded when it is needed: help is to be quick.
    from powersketch.cli.dask_data import opened_data
    from powersketch.files import atomic_write, check_outputs, reading_code
    from powersketch.reports import automatic_model
    from powersketch.storage import save

    path = Path(file)
    model_file = model or Path(f"{path.stem}.model")
    page = report or Path(f"{path.stem}-report.html")
    check_outputs([path], [model_file, page])
    with opened_data(path, dask, data, target, weight) as (here, every):
        used = _with_categories(here, categorical)
        name = _task(used, task)
        options = given_as.merged(
            {
                "kernel": kernel,
                "features": features,
                "n_components": n_components,
                "alpha": given_as.number_or_name("alpha", alpha, ("loo", "gcv")),
                "random_state": seed,
                "n_jobs": jobs,
            },
            given_as.settings_for(_model_class(name), settings),
        )
        estimator = automatic_model(
            name, table=used.is_table, preparation=used.preparation, **options
        )
        wanted = {"task": task, "held_out": held_out, "random_state": seed, "data_name": path.name}
        found, final = _assessed(estimator, used, every, dask, wanted)
    if used.is_table:
        table = reading_code(path, header=data.header, encoding=data.encoding)
        found = replace(found, code=_code(table, used, estimator, model_file, weight))
    # Both or none: the model, which users wait for, takes its name when the page is written.
    with atomic_write(model_file) as unfinished:
        save(final, unfinished, compact=not keep_sums)
        found.save_html(page)
    rows = f"all {found.shape[0]} rows"
    if dask is not None:
        rows = f"all rows by Dask (this report is that of {found.shape[0]} of them)"
    _show(found, model_file, page, rows, as_json=as_json)


def _task(data: Data, task: str) -> str:
    from powersketch.comparison import task_of

    assert data.y is not None
    return "regression" if data.y.ndim > 1 else str(task_of(data.y, task).name)


def _assessed(
    estimator: Any, data: Data, every: Data, dask: str | None, wanted: dict[str, Any]
) -> tuple[ModelReport, Any]:
    """Return the report of rows in memory, and the model fitted to all rows."""
    from powersketch.cli.dask_data import reported
    from powersketch.reports import assess, fitted

    with shown_warnings(), progress("reading") as bar:
        done = iter(range(_STEPS))
        found = assess(
            estimator,
            data.X,
            data.y,
            weights=data.weights,
            targets=data.targets,
            callback=lambda text: bar(next(done), _STEPS, text),
            **wanted,
        )
        bar(_STEPS - 1, _STEPS, "fitting all rows")
        with reported(dask, bar):
            final = fitted(estimator, every.X, every.y, every.weights)
    return found, final


def _model_class(task: str) -> Any:
    from powersketch import SketchedKernelRidge, SketchedKernelRidgeClassifier

    return SketchedKernelRidge if task == "regression" else SketchedKernelRidgeClassifier


def _with_categories(data: Data, categorical: str | None) -> Data:
    """Return the same rows; in some columns numbers are names of categories."""
    names = given_as.parts_of(categorical)
    if not names:
        return data
    if not data.is_table:
        raise InputError("--categorical needs a table, and this file holds rows of numbers.")
    return replace(
        data, preparation=given_as.merged({"categorical": names}, data.preparation, "--prepare")
    )


def _show(found: ModelReport, model_file: Path, page: Path, rows: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**found.to_dict(), "model": str(model_file), "report": str(page)})
        return
    print_lines([found.title, f"It is a {found.task}: {found.task_reason}."])
    print_table(found.table())
    print_lines(
        [
            found.summary,
            *found.choice,
            f"The model, fitted to {rows}, is {model_file}.",
            f"The page is {page}.",
        ]
    )


def _code(table: str, data: Data, estimator: Any, model_file: Path, weight: str | None) -> str:
    """Return the lines of Python that do the same with the table that an expression reads."""
    names = [*data.targets]
    one = names[0] if len(names) == 1 else names
    weighted = ", model__sample_weight=weights" if weight else ""
    return "\n".join(
        [
            "import pandas",
            "from sklearn.pipeline import Pipeline",
            f"from powersketch import {type(estimator[-1]).__name__}, TablePreparation, save",
            "",
            f"table = {table}.dropna(subset={names!r})",
            f"y = table[{one!r}]",
            *([f"weights = table[{weight!r}]"] if weight else []),
            f"X = table[{[*map(str, data.X.columns)]!r}]",
            f"model = {estimator!r}",
            f"model.fit(X, y{weighted})",
            f'save(model, "{model_file.name}")',
        ]
    )
