"""A table of mixed columns as rows of numbers, by scikit-learn's ColumnTransformer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import Real
from powersketch.ecosystem import DocumentationLinks
from powersketch.engines import elsewhere_too
from powersketch.exceptions import InputError, InputTypeError, RangeWarning, warn_user
from powersketch.parameters import checked_integer, one_of
from powersketch.storable import storable
from powersketch.tables.columns import (
    CATEGORY,
    DATE,
    GAPS,
    LEFT_OUT,
    MANY,
    NUMBER,
    Column,
    Wishes,
    as_categories,
    as_dates,
    as_numbers,
    described,
    is_missing,
    shown,
)
from powersketch.tables.encoders import DateParts, FrequencyCodes, HashedCategories
from powersketch.validation import checked_dtype, sound_array

_MOST_NAMES = 5
_KINDS = (NUMBER, DATE, CATEGORY, MANY, GAPS)


@storable
class TablePreparation(DocumentationLinks, TransformerMixin, BaseEstimator):
    r"""Turn the columns of a table into numbers: categories, dates and missing cells included.

    A column's type decides what becomes of it, and `recipe_` says it in words:

    - numbers, also those stored as text, and truth values stay; missing ones become the median of
      the column, and one more column says where;
    - categories get a column for each, up to `max_categories`; of more of them, a number says how
      often each occurs (the target plays no part), or they are hashed;
    - dates become days since the first one, and year, month, day, weekday and hour as far as they
      vary;
    - columns that say nothing are left out: one value everywhere, or another text in every row.

    Underneath is a :class:`sklearn.compose.ColumnTransformer` of an imputer and encoders. New
    categories have zeros in all columns, and a RangeWarning names them.

    Parameters
    ----------
    categorical : list of str or None, default=None
        Columns whose values are categories even though they are numbers, or different everywhere.
    numeric : list of str or None, default=None
        Columns of numbers whose other cells count as missing.
    dates : list of str, dict or None, default=None
        Columns of dates; a dict gives their formats, for instance ``{"day": "%d.%m.%Y"}``. Dates
        that can be read in one way only are found without it.
    max_categories : int, default=128
        Up to how many categories of a column get a column each.
    many_categories : {"frequency", "hash"}, default="frequency"
        What becomes of more: how often each occurs, or 64 columns of hashes.
    dtype : {"float32", "float64"} or None, default=None
        The type of the numbers; None is float32 if all numbers of the table are, else float64.

    Attributes
    ----------
    recipe_ : list of str
        What becomes of every column, a line for each.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of str
        Their names, if they are all texts.

    Examples
    --------
    >>> import pandas
    >>> from powersketch import TablePreparation
    >>> table = pandas.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", "red"]})
    >>> preparation = TablePreparation().fit(table)
    >>> for line in preparation.recipe_:
    ...     print(line)
    size: a number; where it is missing (1 row), the median, and a column says so
    colour: 2 categories, a column for each
    >>> preparation.transform(table)
    array([[1., 0., 0., 1.],
           [2., 1., 1., 0.],
           [3., 0., 0., 1.]])
    >>> [*preparation.get_feature_names_out()]
    ['size', 'missingindicator_size', 'colour_blue', 'colour_red']
    """

    recipe_: list[str]
    _columns: tuple[Column, ...]
    _encoder: ColumnTransformer

    def __init__(
        self,
        *,
        categorical: Iterable[str] | None = None,
        numeric: Iterable[str] | None = None,
        dates: Iterable[str] | Mapping[str, str] | None = None,
        max_categories: int = 128,
        many_categories: str = "frequency",
        dtype: Any = None,
    ) -> None:
        self.categorical = categorical
        self.numeric = numeric
        self.dates = dates
        self.max_categories = max_categories
        self.many_categories = many_categories
        self.dtype = dtype

    @elsewhere_too
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out what every column holds, and how its cells become numbers.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_columns)
            The table, of pandas or of what converts to it, or an array of numbers or objects. Of
            a Dask DataFrame, 65,536 rows spread over all of them are looked at.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : TablePreparation
            The fitted transformer.
        """
        del y
        wishes = self._wishes()
        X = _as_pandas(X)
        table = _table(X)
        _check_names(table, wishes)
        columns = tuple(described(name, table[name], wishes) for name in table.columns)
        if all(column.kind == LEFT_OUT for column in columns):
            raise InputError(
                f"no column of the table (n_samples={len(table)}) says anything: "
                f"{'; '.join(_lines(columns)[:_MOST_NAMES])}. Give rows that differ."
            )
        cells = _converted(table, columns)
        encoder = _encoder(columns, self.many_categories).fit(cells)
        # Nothing is stored before everything is known: a failed fit leaves the last one intact.
        validate_data(self, X, skip_check_array=True)
        self._columns, self._encoder = columns, encoder
        self._dtype = self._output_type(cells, columns)
        self.recipe_ = _lines(columns)
        return self

    @elsewhere_too
    def transform(self, X: Any) -> Any:
        """Return the table as rows of numbers.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_columns)
            A table with the columns given to `fit`. A data frame may have them in any order, and
            further ones, which are ignored.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_numbers)
            Finite numbers of one type. Of a Dask DataFrame, a lazy Dask array.
        """
        check_is_fitted(self)
        cells = _converted(self._fitted_table(X), self._columns)
        self._warn_of_new_categories(cells)
        rows: Real = np.asarray(self._encoder.transform(cells)).astype(self._dtype, copy=False)
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the name of every number: that of its column, and what it says about it."""
        check_is_fitted(self)
        full = self._encoder.get_feature_names_out()
        names = [name.partition("__")[2] for name in full]
        counts = Counter(names)
        # Where a column is called like the category of another, their kinds tell them apart.
        unique = [n if counts[n] == 1 else whole for n, whole in zip(names, full, strict=True)]
        return np.array(unique, dtype=object)

    def origins(self) -> list[str]:
        """Return the column of the table that every number comes from."""
        check_is_fitted(self)
        return [_origin(name, self._columns) for name in self._encoder.get_feature_names_out()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoder")

    def _wishes(self) -> Wishes:
        """Return what the user said about columns, or what is wrong with it."""
        most = checked_integer("max_categories", self.max_categories, 1, remedy="128 is usual")
        many = one_of("many_categories", self.many_categories, ("frequency", "hash"))
        if self.dtype is not None:
            checked_dtype(self.dtype)
        dates = dict(self.dates) if isinstance(self.dates, Mapping) else None
        if dates is None:
            dates = dict.fromkeys(_names("dates", self.dates))
        categorical = _names("categorical", self.categorical)
        wishes = Wishes(categorical, _names("numeric", self.numeric), dates, most, many)
        twice = [name for name, count in Counter(wishes.names).items() if count > 1]
        if twice:
            raise InputError(
                f"{', '.join(map(repr, twice))} is in more than one of categorical, numeric and "
                "dates; allowed is one: choose what the column is."
            )
        return wishes

    def _fitted_table(self, X: Any) -> Any:
        """Return a table of the columns that `fit` had, or say which are missing."""
        X = _as_pandas(X)
        if hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            X = _known_columns(X, self.feature_names_in_)
        table = _table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return table

    def _output_type(self, cells: Any, columns: tuple[Column, ...]) -> str:
        if self.dtype is not None:
            return str(checked_dtype(self.dtype))
        types = {cells[column.name].dtype for column in columns if column.kind == NUMBER}
        return "float32" if types == {np.dtype(np.float32)} else "float64"

    def _warn_of_new_categories(self, cells: Any) -> None:
        encoder = self._encoder.named_transformers_.get(CATEGORY)
        if encoder is None:
            return
        for name, known in zip(encoder.feature_names_in_, encoder.categories_, strict=True):
            new = [each for each in cells[name].unique() if each is not None]
            new = sorted(set(new).difference(known))
            if new:
                listed = ", ".join(map(shown, new[:_MOST_NAMES]))
                warn_user(
                    f"column {name!r} has categories that were not there in fit: {listed}"
                    f"{' and others' if len(new) > _MOST_NAMES else ''}. Such rows have zeros in "
                    "place of a category; fit on rows that have all of them to tell them apart.",
                    RangeWarning,
                )


def _as_pandas(X: Any) -> Any:
    """Return tables of other libraries as data frames of pandas, and arrays as they are."""
    return X.to_pandas() if hasattr(X, "to_pandas") else X


def _table(X: Any) -> Any:
    """Return a data frame of pandas with texts as names, or say what is wrong with X."""
    pandas = _pandas()
    if not isinstance(X, pandas.DataFrame):
        X = check_array(sound_array("X", X), dtype=None, ensure_all_finite=False, input_name="X")
        return pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    if not len(X):
        raise InputError(
            f"the table has 0 sample(s) (shape={X.shape}) while a minimum of 1 is required: "
            "give a table with rows."
        )
    names = [str(name) for name in X.columns]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"several columns are called {twice[0]!r}; allowed are different names: rename "
            "them, or leave all but one out."
        )
    return X.set_axis(names, axis=1)


def _encoder(columns: tuple[Column, ...], many: str) -> ColumnTransformer:
    encoders = {
        NUMBER: SimpleImputer(strategy="median", add_indicator=True),
        DATE: DateParts(),
        CATEGORY: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        MANY: FrequencyCodes() if many == "frequency" else HashedCategories(),
        GAPS: MissingIndicator(features="all"),
    }
    names = {kind: [column.name for column in columns if column.kind == kind] for kind in _KINDS}
    parts = [(kind, encoders[kind], names[kind]) for kind in _KINDS if names[kind]]
    return ColumnTransformer(parts, sparse_threshold=0.0).set_output(transform="default")


def _origin(full: str, columns: tuple[Column, ...]) -> str:
    """Return the column whose name is in that of a number: the longest of its kind, if several."""
    kind, _, name = full.partition("__")
    texts = (name, name.removeprefix("missingindicator_"))
    own = [column.name for column in columns if column.kind == kind]
    found = [each for each in own for text in texts if f"{text}_".startswith(f"{each}_")]
    return max(found, key=len)


def _converted(table: Any, columns: tuple[Column, ...]) -> Any:
    """Return the columns in use, every cell as its encoder takes it."""
    cells: dict[str, Any] = {}
    for column in columns:
        given = table[column.name]
        if column.kind == NUMBER:
            cells[column.name] = as_numbers(column.name, given, column.lenient)
        elif column.kind == DATE:
            cells[column.name] = as_dates(column.name, given, column.date_format)
        elif column.kind == GAPS:
            cells[column.name] = np.where(is_missing(column.name, given), np.nan, 0.0)
        elif column.kind != LEFT_OUT:
            cells[column.name] = as_categories(column.name, given)
    pandas = _pandas()
    # Texts stay Python's: what pandas makes of them differs between its versions.
    series = {
        name: pandas.Series(values, dtype=values.dtype, copy=False)
        for name, values in cells.items()
    }
    return pandas.DataFrame(series, copy=False)


def _known_columns(table: Any, names: NDArray[np.object_]) -> Any:
    missing = [name for name in names if name not in table.columns]
    if missing:
        shortened = ", ".join(map(repr, missing[:_MOST_NAMES]))
        raise InputError(
            f"the table has no column {shortened}{' and others' * (len(missing) > _MOST_NAMES)}, "
            "which it had in fit: give the same columns."
        )
    return table[list(names)]


def _lines(columns: tuple[Column, ...]) -> list[str]:
    return [f"{column.name}: {column.line}" for column in columns]


def _names(option: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputTypeError(
            f"{option}={given!r} is a {type(given).__name__}; allowed is a list of names of "
            f"columns: write [{given!r}]."
        )
    return tuple(str(name) for name in given)


def _check_names(table: Any, wishes: Wishes) -> None:
    unknown = [name for name in wishes.names if name not in table.columns]
    if unknown:
        listed = ", ".join(map(repr, table.columns[: 2 * _MOST_NAMES]))
        raise InputError(
            f"the table has no column {unknown[0]!r}; its columns are {listed}"
            f"{' and others' * (len(table.columns) > 2 * _MOST_NAMES)}: name one of them."
        )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "tables need pandas, which is not installed: pip install 'powersketch[io]'."
        ) from error
    return pandas
