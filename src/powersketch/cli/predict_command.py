"""The command ``powersketch predict``: a stored model applied to a file, block by block."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, progress, shown_warnings
from powersketch.cli.options import model_option, output_option
from powersketch.exceptions import InputError

_BLOCK_ROWS = 20_000


def predict_command(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that powersketch fit has written.")
    ],
    file: given_as.DataFile,
    std: Annotated[
        bool, model_option("--std", help="Add the standard deviation of every prediction.")
    ] = False,
    proba: Annotated[
        bool, model_option("--proba", help="Add the probability of every class.")
    ] = False,
    header: given_as.Header = None,
    encoding: given_as.Encoding = None,
    output: Annotated[
        Path | None,
        output_option("--output", "-o", help="A .csv file; standard output if not given."),
    ] = None,
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Predict the rows of a file with a fitted model.

    The file has the columns that the model was fitted to; further ones are ignored. The result is
    a table with one line for every row.

    Example: powersketch predict diamonds.model new.csv --output prices.csv
    """
    from powersketch.files import check_outputs
    from powersketch.storage import load

    path = Path(file)
    if as_json and output is not None:
        raise InputError(
            "--json prints to standard output, and --output writes a .csv file: give one of them."
        )
    check_outputs([path, model], [output])
    if output is not None and output.suffix.lower() != ".csv":
        raise InputError(
            f"{output.name} has a format that cannot be written; allowed is .csv: choose this "
            "ending."
        )
    fitted = load(model)
    names = _headings(fitted, std=std, proba=proba)
    with shown_warnings(), progress("predicting") as bar:
        reading = {"header": header, "encoding": encoding}
        lines = _predicted(fitted, path, reading, names, bar, std=std, proba=proba)
        if as_json:
            print_json([dict(zip(names, line, strict=True)) for line in lines])
            return
        with _table(output) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            # Not before the first prediction has been made: errors leave nothing behind.
            first = next(lines)
            writer.writerows([names, first])
            writer.writerows(lines)


def _headings(model: Any, *, std: bool, proba: bool) -> list[str]:
    """Return the names of the columns, or say what the model cannot do."""
    if not hasattr(model, "predict"):
        raise InputError(
            f"the model is a {type(model).__name__}, which predicts nothing: use powersketch "
            "transform, or give a model of powersketch fit."
        )
    is_classifier = hasattr(model, "classes_")
    if std and is_classifier:
        raise InputError("--std is for numbers, and this model predicts classes: use --proba.")
    if proba and not is_classifier:
        raise InputError("--proba is for classes, and this model predicts numbers: use --std.")
    names = ["prediction"]
    count = 1 if is_classifier else _target_count(model)
    if count > 1:
        names = [f"prediction {number}" for number in range(count)]
    names += [name.replace("prediction", "std") for name in names] if std else []
    return [*names, *(f"probability of {each}" for each in model.classes_)] if proba else names


def _target_count(model: Any) -> int:
    import numpy as np

    final = model[-1] if hasattr(model, "steps") else model
    return int(np.size(final.intercept_))


def _predicted(
    model: Any,
    path: Path,
    reading: dict[str, Any],
    names: Sequence[str],
    bar: Any,
    *,
    std: bool,
    proba: bool,
) -> Iterator[list[Any]]:
    """Yield a line for every row."""
    import numpy as np

    done = 0
    for block in _blocks(model, path, reading):
        columns = _with_deviations(model, block) if std else [model.predict(block)]
        columns += [model.predict_proba(block)] if proba else []
        parts = [np.asarray(part).reshape(len(columns[0]), -1).tolist() for part in columns]
        for line in zip(*parts, strict=True):
            yield [cell for part in line for cell in part]
        done += len(columns[0])
        bar(done, None, f"{done} rows")


def _with_deviations(model: Any, block: Any) -> list[Any]:
    try:
        return [*model.predict(block, return_std=True)]
    except AttributeError as error:
        # Models are stored without what is as large as all pairs of features.
        raise InputError(
            "the model was stored without the sums that standard deviations follow from: fit it "
            "with powersketch fit --keep-sums, or do without --std."
        ) from error


def _blocks(model: Any, path: Path, reading: dict[str, Any]) -> Iterator[Any]:
    """Yield blocks of rows as the model takes them."""
    from powersketch.files import is_table, open_rows, table_blocks
    from powersketch.parameters import refuse_unless_default
    from powersketch.tables import TablePreparation

    takes_tables = hasattr(model, "steps") and isinstance(model[0], TablePreparation)
    if takes_tables != is_table(path):
        wanted = "a table" if takes_tables else "rows of numbers"
        raise InputError(
            f"the model was fitted to {wanted}, and {path.name} is something else: give a file of "
            "the same kind."
        )
    if takes_tables:
        yield from table_blocks(path, _BLOCK_ROWS, **reading)
        return
    refuse_unless_default(
        "--encoding", reading["encoding"], None, "for rows of numbers, which are no table"
    )
    source = open_rows(path, header=reading["header"])
    source.first(1)  # refuses a file without rows
    yield from source.blocks(_BLOCK_ROWS)


@contextmanager
def _table(output: Path | None) -> Iterator[IO[str]]:
    """Give the stream to write to: a file that appears when it is complete, or standard output."""
    from powersketch.files import atomic_write

    if output is None:
        yield sys.stdout
        return
    with (
        atomic_write(output) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as out,
    ):
        yield out
