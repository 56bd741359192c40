"""The factor gamma of a kernel: a number, or a rule that takes it from the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from powersketch.arrays import Float64, Real, Rows, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.parameters import checked_positive, one_of
from powersketch.routines import row_moments, squared_norms

Gamma: TypeAlias = Any
"""A positive number; or "scale" or "median", which `Kernel.resolve` turns into one."""

_RULES = {
    "scale": ("1 / (n_features * variance of X)", "variance"),
    "median": ("1 / (median of the squared distances of rows of X)", "median squared distance"),
}
_BLOCK_BYTES = 4 << 20
# The median takes the distances of all pairs of so many rows, fewer where rows are long.
_MOST_ROWS = 256
_FEWEST_ROWS = 16
_MOST_ENTRIES = 1 << 25


def checked_gamma(gamma: object) -> Gamma:
    """Return the name of a rule, or a positive number as a float; refuse everything else."""
    if isinstance(gamma, str):
        return one_of("gamma", gamma, tuple(_RULES))
    return checked_positive("gamma", gamma)


def resolved_gamma(gamma: Gamma, X: Rows) -> float:
    """Return gamma as a number, by its rule from the rows: the same bits on every machine.

    With "scale", scikit-learn's rule, it is 1 / (n_features · variance of all entries). With
    "median" it is one over the median of ‖x − y‖², which no outlier moves, over the pairs of
    different rows among up to 256 that are evenly spaced. Where all entries or all rows are
    equal, it is 1.
    """
    if not isinstance(gamma, str):
        return checked_positive("gamma", gamma)
    one_of("gamma", gamma, tuple(_RULES))
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if gamma == "median":
        size = spread = _median_squared_distance(X)
    else:
        spread = _entry_variance(X)
        size = X.shape[1] * spread
        if spread == 0.0 and X.min() != X.max():
            size = math.nan
    if size == 0.0:
        return 1.0
    inverse = 1.0 / size
    if not (math.isfinite(inverse) and inverse > 0.0):
        formula, name = _RULES[gamma]
        raise InputError(
            f"gamma={gamma!r} is {formula}, and these rows have a {name} of {spread:.3g}, whose "
            "inverse float64 cannot hold: scale the columns of X, or give gamma as a number."
        )
    return inverse


def _entry_variance(X: Rows) -> float:
    """Return the variance of all entries of X in two passes; infinity if it exceeds float64."""
    ones, count = np.ones(X.shape[1]), X.shape[0] * X.shape[1]
    sums = np.concatenate([row_moments(block, ones)[1] for block in _blocks(X)])
    if not math.isfinite(float(np.abs(sums).sum())):
        return math.inf
    mean = math.fsum(sums) / count
    squares = np.concatenate([_squared_deviations(block, mean) for block in _blocks(X)])
    if not math.isfinite(float(squares.sum())):
        return math.inf
    # The entries that a sparse matrix does not store are zeros, mean away from the mean.
    absent: int = count - X.nnz if is_sparse(X) else 0
    variance: float = (math.fsum(squares) + absent * mean * mean) / count
    return variance


def _squared_deviations(block: Rows, mean: float) -> Float64:
    deviations = block.astype(np.float64)
    entries = deviations.data if is_sparse(block) else deviations
    entries -= mean
    return squared_norms(deviations)


def _median_squared_distance(X: Rows) -> float:
    """Return the lower median of ‖x − y‖² over pairs of different rows.

    It is zero if all rows are equal, and NaN if they only differ by less than float64 can square.
    """
    length = _mean_length(X)
    most = min(max(math.isqrt(2 * _MOST_ENTRIES // length), _FEWEST_ROWS), _MOST_ROWS, X.shape[0])
    sample = X[np.linspace(0, X.shape[0] - 1, most).astype(np.int64)].astype(np.float64)
    distances = np.concatenate([np.zeros(1), *_squared_distances(sample)])
    apart = distances[distances > 0.0]
    if not apart.size:
        differences = sample - sample[np.zeros(most, dtype=np.int64)]
        return math.nan if abs(differences).max() > 0.0 else 0.0
    middle = (apart.size - 1) // 2
    return float(np.partition(apart, middle)[middle])


def _squared_distances(sample: Rows) -> Iterator[Float64]:
    left, right = np.triu_indices(sample.shape[0], 1)
    with np.errstate(over="ignore"):
        for pairs in slices(left.size, _block_length(sample)):
            yield squared_norms(sample[left[pairs]] - sample[right[pairs]])


def _blocks(X: Rows) -> Iterator[Real]:
    for rows in slices(X.shape[0], _block_length(X)):
        yield X[rows] if is_sparse(X) else np.require(X[rows], requirements=["C", "A"])


def _block_length(X: Rows) -> int:
    rows: int = _BLOCK_BYTES // (_mean_length(X) * X.dtype.itemsize)
    return max(rows, 1)


def _mean_length(X: Rows) -> int:
    length: int = X.nnz // max(X.shape[0], 1) if is_sparse(X) else X.shape[1]
    return max(length, 1)
