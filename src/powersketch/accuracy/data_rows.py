"""The rows that a feature map is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from powersketch.arrays import Rows
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels import Kernel
from powersketch.validation import checked_rows

Float64 = NDArray[np.float64]


class FittedMap(Protocol):
    """What is asked of a feature map: the kernel that it approximates, and features of rows."""

    @property
    def kernel_(self) -> Kernel:
        """The exact kernel."""

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the features of every row."""


@dataclass(frozen=True, eq=False)
class DataRows:
    """Rows as they were given, which the map takes, and as a matrix, which the kernel takes."""

    given: Any
    matrix: Rows

    @classmethod
    def of(cls, X: Any, *, fewest: int = 1) -> DataRows:
        """Return the rows, or say what is wrong with them."""
        matrix = checked_rows(X)
        if matrix.shape[0] < fewest:
            raise InputError(
                f"X has {matrix.shape[0]} row; at least {fewest} are needed, because errors are "
                "measured on pairs of different rows: pass more rows."
            )
        return cls(X if hasattr(X, "iloc") else matrix, matrix)

    @property
    def count(self) -> int:
        """How many rows there are."""
        count: int = self.matrix.shape[0]
        return count

    def take(self, chosen: NDArray[np.int64]) -> DataRows:
        """Return some of the rows; a data frame keeps the names of its columns."""
        matrix = self.matrix[chosen]
        return DataRows(self.given.iloc[chosen] if hasattr(self.given, "iloc") else matrix, matrix)

    def features(self, sketch: FittedMap) -> Float64:
        """Return the features of every row in float64, or say what is wrong with them."""
        given = sketch.transform(self.given)
        Z = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
        if Z.ndim != 2 or Z.shape[0] != self.count:
            raise InputError(
                f"transform of {type(sketch).__name__} returns the shape {Z.shape} for "
                f"{self.count} rows; allowed is one row of features for each: check the map."
            )
        finite = np.isfinite(Z).all(axis=1)
        if not finite.all():
            raise InputError(
                f"transform of {type(sketch).__name__} returns NaN or infinity for "
                f"{np.count_nonzero(~finite)} of {self.count} rows, the first one being the row "
                f"{np.argmin(finite)} of those measured; allowed are finite features: scale X, or "
                "leave these rows out."
            )
        return Z.astype(np.float64, copy=False)


def kernel_matrix(kernel: Kernel, rows: DataRows, n_jobs: int | None) -> Float64:
    """Return the exact matrix of all rows in float64."""
    return np.asarray(kernel(rows.matrix, dtype=np.float64, n_jobs=n_jobs), dtype=np.float64)


def kernel_diagonal(kernel: Kernel, rows: DataRows) -> Float64:
    """Return k(x, x) of all rows in float64."""
    return kernel.diagonal(rows.matrix).astype(np.float64)


def checked_map(sketch: Any) -> FittedMap:
    """Return the fitted feature map, or say what it lacks."""
    if not hasattr(sketch, "transform"):
        raise InputTypeError(
            f"sketch is a {type(sketch).__name__}; allowed is a fitted feature map, with the "
            "attribute kernel_ and the method transform: pass for instance a GaussianSketch."
        )
    if not hasattr(sketch, "kernel_"):
        _say_why_without_kernel(sketch)
    fitted: FittedMap = sketch
    return fitted


def _say_why_without_kernel(sketch: Any) -> NoReturn:
    name = type(sketch).__name__
    try:
        if hasattr(sketch, "fit"):
            check_is_fitted(sketch)
    except NotFittedError as error:
        raise NotFittedError(
            f"this {name} is not fitted; allowed is a fitted feature map: call fit before it is "
            "measured."
        ) from error
    raise InputTypeError(
        f"sketch is a {name} without the attribute kernel_; allowed is a fitted feature map that "
        "has the exact kernel there, to be compared with: pass for instance a GaussianSketch, or "
        "set kernel_ to the one of powersketch.kernels that it approximates."
    )
