"""What a command works on: rows, the columns to predict, and weights, from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.cli.console import tell
from powersketch.cli.options import parts_of
from powersketch.exceptions import InputError
from powersketch.files import is_table, read_rows, read_table
from powersketch.parameters import one_of, refuse_unless_default
from powersketch.tables import TablePreparation

_MOST_NAMES = 10


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of a table or of numbers; targets and weights are no columns of them.

    Parameters
    ----------
    X : data frame, array or sparse matrix
        The rows.
    is_table : bool
        Whether X is a data frame, whose columns need not be numbers.
    preparation : dict
        How columns of a table become numbers: parameters of TablePreparation.
    targets : tuple of str
        The names of the columns to predict.
    y : ndarray of shape (n,) or (n, t), or None
        Their values.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    """

    X: Any
    is_table: bool
    preparation: dict[str, Any]
    targets: tuple[str, ...] = ()
    y: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None

    def numbers(self) -> Data:
        """Return the same rows as numbers; what becomes of the columns of a table is told."""
        if not self.is_table:
            return self
        preparation = TablePreparation(**self.preparation).fit(self.X)
        for line in preparation.recipe_:
            tell(line)
        return replace(self, X=preparation.transform(self.X), is_table=False)


def load_data(
    file: Path,
    *,
    targets: Sequence[str] = (),
    columns: str | None = None,
    drop: str | None = None,
    weight: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    dtype: str | None = None,
    preparation: dict[str, Any],
    table: Any = None,
) -> Data:
    """Return what a file holds, or say in one sentence what is wrong with it or with the wishes.

    Rows without a target or weight are left out, and how many of them is told. Rows of the table
    in the file may have been read before.
    """
    if dtype is not None:
        one_of("dtype", dtype, ("float32", "float64"))
    roles = _Roles([*targets], parts_of(columns), parts_of(drop), [weight] if weight else [])
    roles.check()
    if table is not None or is_table(file):
        if table is None:
            table = read_table(file, header=header, encoding=encoding)
        data = _from_table(file, table, roles, preparation)
    else:
        for name, value in (("--encoding", encoding), ("--prepare", preparation or None)):
            refuse_unless_default(name, value, None, "for rows of numbers, which are no table")
        data = _from_rows(file, read_rows(file, header=header), roles)
    return data if dtype is None else replace(data, X=_converted(data.X, dtype))


@dataclass(frozen=True)
class _Roles:
    """What columns are to be, by the names or numbers that users gave; there is one weight."""

    targets: list[str]
    columns: list[str]
    drop: list[str]
    weight: list[str]

    def check(self) -> None:
        """Refuse columns that are to be two things at once."""
        roles = {"--target": self.targets, "--weight": self.weight, "--drop": self.drop}
        for name in self.columns:
            for role, names in roles.items():
                if name in names:
                    raise InputError(
                        f"column {name!r} is given by --columns and by {role}; it can be one of "
                        f"both: leave it out of --columns, or out of {role}."
                    )
        _check_single([*self.targets, *self.weight, *self.drop])

    def found(self, place: Callable[[str], Any]) -> _Roles:
        """Return the same with the place of every column in the file."""
        parts = (self.targets, self.columns, self.drop, self.weight)
        return _Roles(*([place(name) for name in part] for part in parts))

    def left(self, file: Path, every: Iterable[Any]) -> list[Any]:
        """Return the columns to learn from, of all places there are."""
        gone = {*self.targets, *self.drop, *self.weight}
        left = [place for place in (self.columns or every) if place not in gone]
        if not left:
            raise InputError(
                f"{file.name} has no column left to learn from; leave fewer of them out."
            )
        return left


def _check_single(named: list[str]) -> None:
    for name in named:
        if named.count(name) > 1:
            raise InputError(
                f"column {name!r} is given more than once by --target, --weight and --drop; it can "
                "be one of them: give it once."
            )


def _from_table(file: Path, table: Any, roles: _Roles, preparation: dict[str, Any]) -> Data:
    at = roles.found(lambda name: _column(table, file, name))
    table = _complete(table, [*at.targets, *at.weight], file)
    y = _targets(table, at.targets) if at.targets else None
    weights = _weights(table[at.weight[0]], at.weight[0], file) if at.weight else None
    left = at.left(file, table.columns)
    return Data(table[left], True, preparation, tuple(map(str, at.targets)), y, weights)


def _column(table: Any, file: Path, name: str) -> Any:
    """Return the label of a column from its name, or from its number, which begins at 0."""
    if name in table.columns:
        return name
    labels = [*table.columns]
    if name.removeprefix("-").isdecimal() and -len(labels) <= int(name) < len(labels):
        return labels[int(name)]
    shown = ", ".join(map(str, labels[:_MOST_NAMES]))
    more = f", … ({len(labels)} in all)" if len(labels) > _MOST_NAMES else ""
    raise InputError(
        f"{file.name} has no column {name!r}; its columns are {shown}{more}: name one of them, or "
        f"give a number from 0 to {len(labels) - 1}."
    )


def _complete(table: Any, names: Sequence[Any], file: Path) -> Any:
    """Return the rows that have targets and weights."""
    if not names:
        return table
    missing = table[[*names]].isna().any(axis=1)
    count = int(missing.sum())
    if count == len(table):
        raise InputError(
            f"{file.name} has no row with a value of {', '.join(map(str, names))}: give another "
            "column."
        )
    if count:
        tell(
            f"{count} of {len(table)} rows have no value of {', '.join(map(str, names))} and are "
            "left out"
        )
    # Rows keep their numbers, by which errors name them.
    return table[~missing] if count else table


def _targets(table: Any, names: Sequence[Any]) -> NDArray[Any]:
    """Return one column of numbers or classes, or several columns of numbers."""
    columns = [_values(table[name]) for name in names]
    if len(columns) == 1:
        return columns[0]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "iufb":
            raise InputError(
                f"column {str(name)!r} is not one of numbers, and several targets have to be: give "
                "one --target only."
            )
    return np.column_stack([column.astype(np.float64) for column in columns])


def _values(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    if values.dtype.kind == "M":
        raise InputError(
            f"column {str(column.name)!r} holds dates, which cannot be predicted: give another "
            "--target, or turn them into numbers."
        )
    if values.dtype.kind not in "iufb":
        return np.array([str(each) for each in values])
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InputError(
            f"column {str(column.name)!r}, which is to be predicted, has an infinite value in row "
            f"{column.index[bad[0]]} (the first is 0): correct it, or leave the cell empty, and "
            "the row is left out."
        )
    return values


def _weights(column: Any, name: Any, file: Path) -> NDArray[np.float64]:
    try:
        weights = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.array([-1.0])
    if not (np.isfinite(weights).all() and (weights >= 0.0).all() and weights.any()):
        raise InputError(
            f"{file.name}, column {str(name)!r}: weights have to be numbers of at least 0, and not "
            "all of them 0; give another --weight."
        )
    return weights


def _from_rows(file: Path, X: Any, roles: _Roles) -> Data:
    every = range(X.shape[1])
    at = roles.found(lambda name: _number(file, name, len(every)))
    left = at.left(file, every)
    y = _dense(X[:, at.targets]) if at.targets else None
    if y is not None and len(at.targets) == 1:
        y = y[:, 0]
    weights = _dense(X[:, at.weight])[:, 0].astype(np.float64) if at.weight else None
    # All columns, as most users want them, are not copied.
    rows = X if left == [*every] else X[:, left]
    return Data(rows, False, {}, tuple(f"column {number}" for number in at.targets), y, weights)


def _number(file: Path, name: str, count: int) -> int:
    if name.removeprefix("-").isdecimal() and -count <= int(name) < count:
        return int(name) % count
    raise InputError(
        f"{file.name} has no column {name!r}; its columns have no names: give a number from 0 to "
        f"{count - 1}."
    )


def _dense(columns: Any) -> NDArray[Any]:
    return np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns)


def _converted(X: Any, dtype: str) -> Any:
    if not hasattr(X, "columns"):
        return X.astype(dtype)
    numeric = X.select_dtypes("number").columns
    return X.astype(dict.fromkeys(numeric, dtype))
