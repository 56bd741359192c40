"""The rows that feature maps are measured on, random samples of them, and the maps themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from powersketch.arrays import Float64, Rows, Vector, is_sparse, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels import Kernel
from powersketch.parameters import checked_fraction
from powersketch.random_streams import RandomStreams
from powersketch.validation import checked_rows

LARGEST_SIZE = 2**16
_FIRST_SIZE = 256
# One half to fit to, and of the other one quarter to search with and one to confirm the result on.
_FEWEST_DIVIDED = 400
_MOST_MEASURED = 3000
# All pairs of this many rows are a matrix of 32 MB.
SAMPLE_ROWS = 2000
FEWEST_SAMPLE_ROWS = 256
_FEATURES_OF_SAMPLE = 2**26
# Up to this many rows, all are measured against a few before the sample is drawn.
_ROWS_MEASURED_FIRST = 2**15
_REFERENCES = 64
_BLOCK_ROWS = 1024
_FEATURES_OF_BLOCK = 2**22


@runtime_checkable
class Transformer(Protocol):
    """What gives features of rows."""

    def transform(self, X: Any) -> Any:
        """Return the features of every row."""


@runtime_checkable
class FittedMap(Transformer, Protocol):
    """All that is asked of a map to be measured: its features, and the kernel they stand for."""

    @property
    def kernel_(self) -> Kernel:
        """The exact kernel."""


def checked_map(sketch: object) -> FittedMap:
    """Return the fitted feature map, or say what it lacks."""
    name = type(sketch).__name__
    if not isinstance(sketch, Transformer):
        raise InputTypeError(
            f"sketch is a {name}; allowed is a fitted feature map, with the attribute kernel_ and "
            "the method transform: pass for instance a GaussianSketch."
        )
    if isinstance(sketch, FittedMap) and isinstance(sketch.kernel_, Kernel):
        return sketch
    if isinstance(sketch, BaseEstimator):
        try:
            check_is_fitted(sketch)
        except NotFittedError as error:
            raise NotFittedError(
                f"this {name} is not fitted; allowed is a fitted feature map: call fit before it "
                "is measured."
            ) from error
    lack = "a kernel as" if isinstance(sketch, FittedMap) else "the attribute"
    raise InputTypeError(
        f"sketch is a {name} without {lack} kernel_; allowed is a fitted feature map that has the "
        "exact kernel there, to be compared with: pass for instance a GaussianSketch, or set "
        "kernel_ to the one of powersketch.kernels that it approximates."
    )


def checked_confidence(confidence: object) -> float:
    """Return the probability with which bounds are to contain the true value."""
    return checked_fraction("confidence", confidence, remedy="0.99 is the default")


@dataclass(frozen=True, eq=False)
class DataRows:
    """Rows as they were given, for the map, and as a matrix, for the kernel."""

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

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        count: int = self.matrix.shape[0]
        return count

    def take(self, chosen: slice | NDArray[np.int64]) -> DataRows:
        """Return some of the rows; a data frame keeps the names of its columns."""
        matrix = self.matrix[chosen]
        return DataRows(self.given.iloc[chosen] if hasattr(self.given, "iloc") else matrix, matrix)

    def divided(self, streams: RandomStreams) -> tuple[DataRows, DataRows]:
        """Return the rows to measure on and those to fit to: others, if there are many."""
        measured, fitted = divided_positions(self.count, streams)
        return (self, self) if measured is fitted else (self.take(measured), self.take(fitted))

    def features(self, sketch: Transformer) -> Float64:
        """Return the features of every row in float64, or say what is wrong with them."""
        features = sketch.transform(self.given)
        Z = np.asarray(features.toarray() if is_sparse(features) else features)
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

    def feature_count(self, sketch: Transformer) -> int:
        """Return how many features each row has."""
        count: int = self.take(slice(0, 1)).features(sketch).shape[1]
        return count

    def kernel_matrix(self, kernel: Kernel, n_jobs: int | None) -> Float64:
        """Return the exact matrix of all rows in float64."""
        return np.asarray(kernel(self.matrix, dtype=np.float64, n_jobs=n_jobs), dtype=np.float64)

    def kernel_diagonal(self, kernel: Kernel) -> Vector:
        """Return k(x, x) of all rows in float64."""
        return kernel.diagonal(self.matrix).astype(np.float64)


def divided_positions(
    count: int, streams: RandomStreams
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which rows to measure on and which to fit to: others, if there are many.

    A map that takes landmarks from its rows, or adapts to them, has smaller errors there.
    """
    everything = np.arange(count)
    if count < _FEWEST_DIVIDED:
        return everything, everything
    measured = np.sort(streams.sample("measured", count, min(count // 2, _MOST_MEASURED)))
    return measured, np.delete(everything, measured)


@runtime_checkable
class SizedMap(Protocol):
    """A feature map, fitted or not, that says how many components it can have."""

    def component_range(self, rows: int) -> tuple[int, int]:
        """Return the smallest and the largest number, where it is fitted to this many rows."""


@runtime_checkable
class LandmarkMap(Protocol):
    """A feature map made of the kernel's columns at some of the rows that it is fitted to."""

    def kernel_columns(self) -> Callable[[Any], Any]:
        """Return the function from rows to the kernel's values at the landmarks."""


@dataclass(frozen=True, eq=False)
class MapFamily:
    """A feature map with any number of components, fitted to the same rows with the same seed."""

    sketch: Any
    rows: DataRows
    seed: int

    @classmethod
    def of(cls, sketch: object, rows: DataRows, seed: int) -> MapFamily:
        """Return the family of maps with the parameters of this one, or say what it lacks."""
        if not (isinstance(sketch, BaseEstimator) and "n_components" in sketch.get_params()):
            raise InputTypeError(
                f"sketch is a {type(sketch).__name__}; allowed is a feature map with the parameter "
                "n_components: pass for instance GaussianSketch()."
            )
        return cls(sketch, rows, seed)

    def draw(self, size: int) -> FittedMap:
        """Return a fitted map with this number of components."""
        resized = clone(self.sketch).set_params(n_components=size, random_state=self.seed)
        if "eps" in resized.get_params():
            resized.set_params(eps=None)
        return checked_map(resized.fit(self.rows.given))

    @property
    def has_landmarks(self) -> bool:
        """Whether the features come from landmarks among the rows."""
        return isinstance(self.sketch, LandmarkMap)

    @property
    def sizes(self) -> tuple[int, int]:
        """How few and how many components the map can have."""
        if not isinstance(self.sketch, SizedMap):
            return 1, LARGEST_SIZE
        smallest, largest = self.sketch.component_range(self.rows.count)
        # Where no size is allowed, the map says so when it is fitted with its smallest one.
        return smallest, max(smallest, min(largest, LARGEST_SIZE))

    @property
    def first_size(self) -> int:
        """The size of a first map, from whose errors others are predicted."""
        smallest, largest = self.sizes
        return min(max(_FIRST_SIZE, smallest), largest)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows, and the probabilities with which they came into the sample.

    Rows enter independently of each other, each with a probability of its own, so that a pair
    enters with the product of two of them. Sums over all pairs are estimated by sums over those of
    the sample, each divided by its probability.

    Parameters
    ----------
    rows : DataRows
        The rows of the sample.
    probabilities : ndarray of shape (n,)
        One for each of them.
    for_new_rows : bool
        Whether the rows stand for others of their kind too, and not only for the data set.
    """

    rows: DataRows
    probabilities: Vector
    for_new_rows: bool = False

    @classmethod
    def of_all(cls, rows: DataRows, *, for_new_rows: bool = False) -> RowSample:
        """Return the sample that holds every row."""
        return cls(rows, np.ones(rows.count), for_new_rows)

    @classmethod
    def draw(
        cls,
        sketch: FittedMap,
        rows: DataRows,
        diagonal: Vector,
        streams: RandomStreams,
        size: int = SAMPLE_ROWS,
    ) -> RowSample:
        """Draw about `size` of the rows, whose k(x, x) are given; all if there are no more.

        Rows with large k(x, x) are more likely to be drawn, because |k(x, y)|² is at most
        k(x, x) k(y, y), and so are rows with large errors: no pair that is left out may count for
        much more than the others.
        """
        if rows.count <= size:
            return cls.of_all(rows)
        sizes = [np.ones(rows.count), diagonal]
        if rows.count <= _ROWS_MEASURED_FIRST:
            sizes.append(_squared_errors(sketch, rows, streams))
        probabilities = row_probabilities(sizes, size)
        uniform = streams.uniforms("rows", rows.count)
        chosen = np.flatnonzero(uniform < probabilities)
        return cls(rows.take(chosen), probabilities[chosen])

    @property
    def complete(self) -> bool:
        """Whether there are no other rows that the sample stands for."""
        return not self.for_new_rows and bool(np.all(self.probabilities == 1.0))


def row_probabilities(sizes: Sequence[Vector], count: int) -> Vector:
    """Return probabilities that add up to `count`, equal parts of it by each kind of size."""
    scaled = [size / (float(size.max()) or 1.0) for size in sizes]
    shares: Vector = np.mean([size / (size.sum() or 1.0) for size in scaled], axis=0)
    certain: NDArray[np.bool_] = np.zeros(len(shares), dtype=bool)
    while True:
        factor = (count - np.count_nonzero(certain)) / shares[~certain].sum()
        above = ~certain & (factor * shares >= 1.0)
        if not above.any():
            return np.where(certain, 1.0, factor * shares)
        certain |= above


def sample_rows(components: int) -> int:
    """Return how many rows to sample, so that their features do not take too much memory."""
    return min(SAMPLE_ROWS, max(_FEATURES_OF_SAMPLE // max(components, 1), FEWEST_SAMPLE_ROWS))


def _squared_errors(sketch: FittedMap, rows: DataRows, streams: RandomStreams) -> Vector:
    """Return the sum of squared errors of every row with a few random ones.

    A row whose errors are far above those of others must not be left to chance.
    """
    references = rows.take(streams.sample("references", rows.count, _REFERENCES))
    scale = float(np.max(sketch.kernel_.diagonal(references.matrix))) or 1.0
    Z = references.features(sketch) / math.sqrt(scale)
    sums = np.empty(rows.count)
    step = min(_BLOCK_ROWS, max(_FEATURES_OF_BLOCK // Z.shape[1], 1))
    for part in slices(rows.count, step):
        block = rows.take(part)
        errors = block.features(sketch) / math.sqrt(scale) @ Z.T
        errors -= sketch.kernel_(block.matrix, references.matrix, dtype=np.float64) / scale
        sums[part] = np.einsum("ij,ij->i", errors, errors)
    return sums
