"""The command ``powersketch info``: what a model or a data file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from powersketch.cli import options as given_as
from powersketch.cli.console import print_json, print_lines
from powersketch.cli.option_groups import DataOptions
from powersketch.exceptions import InputError


def info_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A model of powersketch, or a file of data.")
    ],
    data: DataOptions = DataOptions(),
    as_json: given_as.AsJson = False,
    debug: given_as.Debug = False,
) -> None:
    """Show what a file holds: a model, and what it was fitted to, or data, column by column.

    Example: powersketch info diamonds.model
    """
    from powersketch.files import is_data

    if not (file.is_file() or is_data(file)):
        raise InputError(f"{file} is not a file; give the path of a model or of data.")
    found = _of_data(file, data) if is_data(file) else _of_model(file)
    if as_json:
        print_json(found)
    else:
        print_lines(_lines(found))


def _of_model(file: Path) -> dict[str, Any]:
    from powersketch.storage import describe

    return dict(describe(file))


def _of_data(file: Path, options: DataOptions) -> dict[str, Any]:
    """Return the size of the data and, for a table, what would become of every column."""
    from powersketch.arrays import is_sparse
    from powersketch.tables import TablePreparation

    data = options.load(file)
    rows, columns = data.X.shape
    found: dict[str, Any] = {"file": file.name, "rows": int(rows), "columns": int(columns)}
    if data.is_table:
        return {**found, "recipe": TablePreparation(**data.preparation).fit(data.X).recipe_}
    found["entries"] = f"{data.X.dtype}{', sparse' if is_sparse(data.X) else ''}"
    return found


def _lines(found: dict[str, Any], indent: str = "") -> list[str]:
    """Return names and values, one line each; what is inside something is indented."""
    lines: list[str] = []
    for name, value in found.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", *_lines(value, f"{indent}  ")]
        elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            lines += [f"{indent}{name}:", *(f"{indent}  {each}" for each in value)]
        else:
            lines.append(f"{indent}{name}: {value}")
    return lines
