"""What a column of a table holds: numbers, categories, dates, or nothing of use.

Text is looked at value by value, not cell by cell: a column of a million cells may have ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError, InputTypeError
from powersketch.storable import storable

# What stands for a value that is not there, among numbers and dates; alone it may be a category.
_GAPS = {"NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "?", "-", ".", "#N/A"}
_ISO = "ISO8601"
_LOOKS_LIKE_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")
_LOOKS_LIKE_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}( \d{1,2}:\d{2}(:\d{2})?)?$")
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
# With this share of numbers, other cells are rather slips than categories.
_NEARLY_ALL = 0.9
# In fewer rows, text that is different everywhere may be chance.
_FEWEST_NAMES = 20
_NAMES_OF_ROW_NUMBERS = ("", "Unnamed: 0", "rownames", "index")
_SHOWN = 40

NUMBER, CATEGORY, MANY, DATE, GAPS, LEFT_OUT = (
    "number",
    "category",
    "many categories",
    "date",
    "gaps",
    "left out",
)
"""The kinds of columns; of one of gaps, only where they are is of use."""


@storable
@dataclass(frozen=True)
class Column:
    """What a column was found to hold, and what is said about it.

    Parameters
    ----------
    name : str
        Its name in the table.
    kind : str
        What becomes of it.
    line : str
        What becomes of it, in words.
    date_format : str or None
        How its text is read, if it is a date in words.
    lenient : bool
        Whether cells that are no numbers count as gaps: the user has said that it has numbers.
    """

    name: str
    kind: str
    line: str
    date_format: str | None = None
    lenient: bool = False


@dataclass(frozen=True)
class Wishes:
    """What the user knows about columns, by name, and how many categories get columns."""

    categorical: tuple[str, ...]
    numeric: tuple[str, ...]
    dates: dict[str, str | None]
    most_categories: int
    many: str

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that something is known about."""
        return (*self.categorical, *self.numeric, *self.dates)


def described(name: str, cells: Any, wishes: Wishes) -> Column:
    """Return what a column (a pandas Series) holds."""
    missing = int(cells.isna().sum())
    if missing == len(cells):
        return Column(name, LEFT_OUT, "no values at all; left out")
    if name in wishes.categorical or hasattr(cells.dtype, "categories"):
        return _categories(name, cells, wishes)
    if name in wishes.dates or cells.dtype.kind == "M":
        return _dates(name, cells, wishes.dates.get(name))
    if cells.dtype.kind in "biufm" or _is_nullable_number(cells.dtype):
        return _numbers(name, as_numbers(name, cells), name in wishes.numeric)
    return _text(name, cells, wishes)


def _is_nullable_number(dtype: Any) -> bool:
    """Tell whether it is one of pandas' own types of numbers, or one of Arrow's."""
    return getattr(dtype, "_is_numeric", False) or getattr(dtype, "_is_boolean", False)


def _text(name: str, cells: Any, wishes: Wishes) -> Column:
    codes, values = _distinct(name, cells)
    numbers, is_gap = _parsed(values)
    unread = np.isnan(numbers) & ~is_gap
    if name in wishes.numeric or not unread.any():
        if is_gap.all():
            return Column(name, LEFT_OUT, "no values at all; left out")
        lenient = name in wishes.numeric
        return _numbers(name, _spread(numbers, codes), lenient, stored_as=" stored as text")
    date_format = _date_format(values[~is_gap])
    if date_format is not None:
        return _dates(name, cells, date_format)
    readable = int(np.count_nonzero(~np.isnan(_spread(numbers, codes))))
    if _has_slips(codes, values, readable, wishes):
        row = int(np.flatnonzero(np.append(unread, False)[codes])[0])
        raise InputError(
            f"column {name!r} has numbers, but {shown(values[codes[row]])} in "
            f"{_row(cells.index, row)}: correct such cells, give numeric=[{name!r}] to take them "
            f"for missing, or categorical=[{name!r}] to take all values for categories."
        )
    return _categories(name, cells, wishes)


def _has_slips(
    codes: NDArray[np.intp], values: NDArray[Any], readable: int, wishes: Wishes
) -> bool:
    """Tell a column of numbers with a few cells of other text: nobody meant categories.

    Categories are few, and occur more than once.
    """
    given = int(np.count_nonzero(codes >= 0))
    few = values.size <= min(wishes.most_categories, given // 2)
    return readable >= _NEARLY_ALL * given and not few


def _numbers(name: str, values: NDArray[Any], lenient: bool, stored_as: str = "") -> Column:
    present = values[~np.isnan(values)]
    missing = values.size - present.size
    if (present == present[0]).all():
        value = f"{present[0]:g}"
        if not missing:
            return Column(name, LEFT_OUT, f"{value} in every row; left out")
        return Column(name, GAPS, f"{value} or missing; a column says where it is missing")
    counts = bool((np.diff(values) == 1).all())
    if name in _NAMES_OF_ROW_NUMBERS and counts:
        return Column(name, LEFT_OUT, "the number of the row; left out")
    line = f"a number{stored_as}"
    if missing:
        line += f"; where it is missing ({_rows(missing)}), the median, and a column says so"
    return Column(name, NUMBER, line, lenient=lenient)


def _categories(name: str, cells: Any, wishes: Wishes) -> Column:
    codes, values = _distinct(name, cells)
    count, missing = values.size, int(np.count_nonzero(codes < 0))
    if not count:
        return Column(name, LEFT_OUT, "no values at all; left out")
    if count == 1:
        if not missing:
            return Column(name, LEFT_OUT, f"{shown(values[0])} in every row; left out")
        line = f"{shown(values[0])} or missing; a column says where it is missing"
        return Column(name, GAPS, line)
    asked_for = name in wishes.categorical or hasattr(cells.dtype, "categories")
    if count == codes.size - missing and count >= _FEWEST_NAMES and not asked_for:
        return Column(name, LEFT_OUT, "another text in every row; left out")
    also = "; missing counts as one" if missing else ""
    if count + (missing > 0) <= wishes.most_categories:
        return Column(name, CATEGORY, f"{count} categories, a column for each{also}")
    how = "how often they occur" if wishes.many == "frequency" else "hashed to columns"
    return Column(name, MANY, f"{count} categories, {how}{also}")


def _dates(name: str, cells: Any, date_format: str | None) -> Column:
    if cells.dtype.kind == "M" or hasattr(cells.dtype, "tz"):
        date_format = None
    elif date_format is None:
        _, values = _distinct(name, cells)
        date_format = _date_format(values)
        if date_format is None:
            raise InputError(
                f"column {name!r} is to be a date, and {shown(values[0])} and others can be read "
                f"in no way or in several: give the format, as in dates={{{name!r}: '%d.%m.%Y'}}."
            )
    days = as_dates(name, cells, date_format)
    missing = int(np.isnat(days).sum())
    if np.unique(days[~np.isnat(days)]).size == 1:
        if not missing:
            return Column(name, LEFT_OUT, "the same date in every row; left out")
        return Column(name, GAPS, "one date or missing; a column says where it is missing")
    line = "a date: days since the first one, and those parts that vary"
    if missing:
        line += f"; where it is missing ({_rows(missing)}), medians, and a column says so"
    return Column(name, DATE, line, date_format=date_format)


def as_numbers(name: str, cells: Any, lenient: bool = False) -> NDArray[Any]:
    """Return the numbers of a column, NaN where they are missing; float32 stays float32."""
    if cells.dtype.kind == "m":
        return np.asarray(cells.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan))
    if cells.dtype.kind in "biuf" or _is_nullable_number(cells.dtype):
        dtype = np.float32 if cells.dtype in ("float32", "Float32") else np.float64
        values: NDArray[Any] = cells.to_numpy(dtype=dtype, na_value=np.nan)
    else:
        codes, texts = _distinct(name, cells)
        numbers, is_gap = _parsed(texts)
        unread = np.append(np.isnan(numbers) & ~is_gap, False)[codes]
        if unread.any() and not lenient:
            row = int(np.flatnonzero(unread)[0])
            raise InputError(
                f"column {name!r} had numbers when it was fitted, and now has "
                f"{shown(texts[codes[row]])} in {_row(cells.index, row)}: correct it, or leave the "
                "cell empty if the value is not known."
            )
        values = _spread(numbers, codes)
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise InputError(
            f"column {name!r} has an infinite value in {_row(cells.index, infinite[0])}; allowed "
            "are finite numbers and missing cells: remove it or leave the cell empty."
        )
    return values


def as_categories(name: str, cells: Any) -> NDArray[np.object_]:
    """Return the categories of a column as text, None where they are missing."""
    codes, values = _distinct(name, cells)
    return np.append(values, np.array([None], dtype=object))[codes]


def is_missing(name: str, cells: Any) -> NDArray[np.bool_]:
    """Tell which cells have no value."""
    codes, values = _distinct(name, cells)
    gaps = np.array([value in _GAPS for value in values], dtype=bool)
    return np.append(gaps, True)[codes]


def as_dates(name: str, cells: Any, date_format: str | None) -> NDArray[np.datetime64]:
    """Return the dates of a column in universal time, NaT where they are missing."""
    import pandas

    if date_format is None:
        if cells.dtype.kind != "M" and not hasattr(cells.dtype, "tz"):
            raise InputTypeError(
                f"column {name!r} had dates when it was fitted, and now has the type "
                f"{cells.dtype}: convert it with pandas.to_datetime."
            )
        return _nanoseconds(pandas.to_datetime(cells, utc=True))
    codes, values = _distinct(name, cells)
    gaps = np.array([value in _GAPS for value in values], dtype=bool)
    texts = pandas.Series(values, dtype=object).mask(gaps)
    days = pandas.to_datetime(texts, format=date_format, utc=True, errors="coerce")
    unread = np.append(days.isna().to_numpy() & ~gaps, False)[codes]
    if unread.any():
        row = int(np.flatnonzero(unread)[0])
        raise InputError(
            f"column {name!r} has dates like {date_format}, but {shown(values[codes[row]])} in "
            f"{_row(cells.index, row)}: correct it, or leave the cell empty."
        )
    return np.append(_nanoseconds(days), np.datetime64("NaT", "ns"))[codes]


def _nanoseconds(days: Any) -> NDArray[np.datetime64]:
    return np.asarray(days.dt.tz_localize(None).to_numpy(dtype="datetime64[ns]"))


def _distinct(name: str, cells: Any) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
    """Return the number of every cell's text, −1 for missing ones, and the different texts."""
    import pandas

    try:
        codes, values = pandas.factorize(cells)
    except TypeError as error:
        raise InputTypeError(
            f"column {name!r} has cells that are no single values ({error}); allowed are numbers, "
            "texts and dates: split it into columns, or leave it out."
        ) from error
    texts = pandas.Series([_as_text(value) for value in values], dtype=object)
    # Other spellings of one number, or spaces around a text, are no other values.
    again, distinct = pandas.factorize(texts)
    numbers = np.append(again, -1)[codes]
    return numbers, np.asarray(distinct, dtype=object)


def _as_text(value: Any) -> str | None:
    if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value).strip() or None


def _parsed(texts: NDArray[np.object_]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the texts as numbers, NaN for those that are none, and which stand for a gap."""
    import pandas

    is_gap = np.array([text in _GAPS for text in texts], dtype=bool)
    numbers = pandas.to_numeric(pandas.Series(texts, dtype=object), errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    values[is_gap] = np.nan
    return values, is_gap


def _spread(values: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.append(values, np.nan)[codes]


def _date_format(texts: Sequence[str] | NDArray[np.object_]) -> str | None:
    """Return the one format that reads all texts, or None if there is none or more than one."""
    import pandas

    texts = [text for text in texts if text not in _GAPS]
    if not texts:
        return None
    if all(_LOOKS_LIKE_ISO.match(text) for text in texts):
        formats = [_ISO]
    elif all(_LOOKS_LIKE_DATE.match(text) for text in texts):
        formats = [day + time for time in _TIMES for day in _DAYS]
    else:
        return None
    series = pandas.Series(texts, dtype=object)
    fitting = [
        each
        for each in formats
        if pandas.to_datetime(series, format=each, utc=True, errors="coerce").notna().all()
    ]
    return fitting[0] if len(fitting) == 1 else None


def shown(value: object) -> str:
    """Return a value for a message, cut off where it is long."""
    text = str(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _row(index: Any, place: int) -> str:
    """Return the row in words, by its label: a part of a table keeps the labels of the whole."""
    label = index[place]
    counted = " (the first is 0)" if isinstance(label, int | np.integer) else ""
    return f"row {label}{counted}"


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"
