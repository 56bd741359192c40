"""Encoders that scikit-learn does not have: parts of dates, frequencies of categories, hashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.validation import validate_data

from powersketch.arrays import Float64
from powersketch.storable import storable

_NANOSECONDS_PER_DAY = 86_400 * 10**9
_NANOSECONDS_PER_HOUR = 3600 * 10**9

# Every part as a number, given dates as pandas' index of them.
_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": lambda days: days.year,
    "month": lambda days: days.month,
    "day": lambda days: days.day,
    "weekday": lambda days: days.day_of_week,
    "hour": lambda days: (days - days.normalize()).asi8 / _NANOSECONDS_PER_HOUR,
}


class _ColumnEncoder(TransformerMixin, BaseEstimator):
    """A transformer of the columns of a data frame, each on its own."""

    def _frame(self, X: Any, *, reset: bool) -> Any:
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X


@storable
class DateParts(_ColumnEncoder):
    """Days since the first date, and year, month, day, weekday and hour where they vary.

    Attributes
    ----------
    starts_ : ndarray of int64
        The first date of every column, in nanoseconds since 1970.
    parts_ : list of list of str
        The parts of every column that vary.
    medians_ : list of ndarray
        What missing dates get, for the days and for every part.
    has_gaps_ : ndarray of bool
        Whether a column says where dates are missing.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look which parts vary."""
        frame = self._frame(X, reset=True)
        self.starts_ = np.empty(frame.shape[1], dtype=np.int64)
        self.has_gaps_ = np.empty(frame.shape[1], dtype=bool)
        self.parts_, self.medians_ = [], []
        for number in range(frame.shape[1]):
            days = _days(frame, number)
            present = days[days.notna()]
            self.starts_[number] = present.min().value
            self.has_gaps_[number] = len(present) < len(days)
            parts = [name for name, part in _PARTS.items() if np.ptp(part(present)) > 0]
            self.parts_.append(parts)
            numbers = _date_numbers(present, int(self.starts_[number]), parts)
            self.medians_.append(np.median(numbers, axis=0))
        return self

    def transform(self, X: Any) -> Float64:
        """Return the numbers of every date, and where dates are missing."""
        frame = self._frame(X, reset=False)
        columns: list[Float64] = []
        for number, (parts, medians) in enumerate(zip(self.parts_, self.medians_, strict=True)):
            days = _days(frame, number)
            missing = days.isna()
            numbers = np.tile(medians, (len(days), 1))
            numbers[~missing] = _date_numbers(days[~missing], int(self.starts_[number]), parts)
            columns.append(numbers)
            if self.has_gaps_[number]:
                columns.append(missing.astype(np.float64)[:, None])
        return np.concatenate(columns, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return what every number is called."""
        names: list[str] = []
        for number, name in enumerate(self.feature_names_in_):
            names += [f"{name}_{part}" for part in ("days", *self.parts_[number])]
            names += [f"missingindicator_{name}"] * bool(self.has_gaps_[number])
        return np.array(names, dtype=object)


def _days(frame: Any, number: int) -> Any:
    import pandas

    return pandas.DatetimeIndex(frame.iloc[:, number].to_numpy(dtype="datetime64[ns]"))


def _date_numbers(days: Any, start: int, parts: list[str]) -> Float64:
    elapsed = (days.asi8 - start) / _NANOSECONDS_PER_DAY
    columns = [elapsed, *(_PARTS[part](days) for part in parts)]
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


@storable
class FrequencyCodes(_ColumnEncoder):
    """How often a category occurs among the rows of `fit`: its share of them, 0 if it is new.

    Attributes
    ----------
    categories_ : list of ndarray of object
        The categories of every column; None stands for missing ones.
    shares_ : list of ndarray of float64
        Their shares.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the categories."""
        frame = self._frame(X, reset=True)
        counted = [_shares(frame.iloc[:, number]) for number in range(frame.shape[1])]
        self.categories_ = [categories for categories, _ in counted]
        self.shares_ = [shares for _, shares in counted]
        return self

    def transform(self, X: Any) -> Float64:
        """Return the share of every cell's category."""
        import pandas

        frame = self._frame(X, reset=False)
        codes = np.empty(frame.shape)
        for number, categories in enumerate(self.categories_):
            known = pandas.Index(categories, dtype=object)
            at = known.get_indexer(frame.iloc[:, number].astype(object))
            codes[:, number] = np.append(self.shares_[number], 0.0)[at]
        return codes

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return what every code is called."""
        return np.array([f"{name}_frequency" for name in self.feature_names_in_], dtype=object)


def _shares(cells: Any) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    counts = cells.astype(object).value_counts(dropna=False, sort=False)
    categories = np.array([None if each != each else each for each in counts.index], dtype=object)
    return categories, counts.to_numpy(dtype=np.float64) / len(cells)


@storable
class HashedCategories(_ColumnEncoder):
    """Every category is +1 or −1 in one of a few columns, which its hash chooses.

    Parameters
    ----------
    n_columns : int
        How many columns there are for each column of categories.
    """

    def __init__(self, n_columns: int = 64) -> None:
        self.n_columns = n_columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the names of the columns; the hashes need nothing."""
        self._frame(X, reset=True)
        return self

    def transform(self, X: Any) -> Float64:
        """Return the columns of hashes."""
        import pandas

        frame = self._frame(X, reset=False)
        hasher = FeatureHasher(self.n_columns, input_type="string")
        parts = []
        for number in range(frame.shape[1]):
            # A column of a million cells may have a thousand categories.
            codes, categories = pandas.factorize(frame.iloc[:, number].fillna(""))
            hashed = hasher.transform([[category] for category in categories])
            parts.append(hashed.toarray()[codes])
        return np.concatenate(parts, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return what every column is called."""
        names = [f"{n}_hash{i}" for n in self.feature_names_in_ for i in range(self.n_columns)]
        return np.array(names, dtype=object)
