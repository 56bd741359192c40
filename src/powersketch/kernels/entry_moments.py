"""The mean and the variance of all entries of X, for gamma="scale": exact sums over rows.

Sums are rational numbers, so that their order does not matter: rows may be divided into blocks in
any way, and every bit of the variance is that of all rows at once. What is rounded, the sum and
the squared deviations within a row, depends on that row only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from powersketch.arrays import Float64, Rows, Vector, is_sparse, slices
from powersketch.kernels.rows import mean_length
from powersketch.routines import row_moments, squared_norms

_BLOCK_BYTES = 4 << 20
# Between these, products of two numbers and their rounding errors are neither lost nor infinite.
_LEAST_PRODUCT, _LARGEST_PRODUCT = 2.0**-900, 2.0**900
_SPLIT = 2.0**27 + 1.0  # halves of float64, whose products are exact


@dataclass(frozen=True)
class EntryMoments:
    """Sums over rows x of weight w: of w, w Σx and w Σx², the last one without rounding errors.

    `low` and `high` are the least and the largest entry. Sums of None are beyond float64.
    """

    columns: int
    weight: Fraction
    sums: tuple[Fraction, Fraction] | None
    low: float
    high: float

    @classmethod
    def of(cls, X: Rows, weights: Vector | None = None) -> Self:
        """Add up the rows of a checked matrix."""
        step: int = _BLOCK_BYTES // (mean_length(X) * X.dtype.itemsize)
        blocks = [_block(X, part) for part in slices(X.shape[0], max(step, 1))]
        sums = np.concatenate([row_moments(block, np.ones(X.shape[1]))[1] for block in blocks])
        with np.errstate(over="ignore", invalid="ignore"):
            within = _within_rows(blocks, sums / X.shape[1])
            total = _row_sums(sums, within, X.shape[1], weights)
        weight = Fraction(len(sums)) if weights is None else _exact_sum(weights)
        return cls(X.shape[1], weight, total, float(X.min()), float(X.max()))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """Return those of the rows of all parts."""
        known = [part.sums for part in parts if part.sums is not None]
        sums = None
        if len(known) == len(parts):
            first, second = zip(*known, strict=True)
            sums = sum(first, Fraction()), sum(second, Fraction())
        return cls(
            parts[0].columns,
            sum((part.weight for part in parts), Fraction()),
            sums,
            min(part.low for part in parts),
            max(part.high for part in parts),
        )

    @property
    def variance(self) -> float:
        """The variance of all entries.

        It is infinite if it exceeds float64, and NaN if the squares of all deviations underflow.
        """
        if self.low == self.high:
            return 0.0
        if self.sums is None:
            return math.inf
        count = self.weight * self.columns
        first, second = self.sums
        try:
            return float((second - first * first / count) / count) or math.nan
        except OverflowError:
            return math.inf


def _block(X: Rows, part: slice) -> Rows:
    return X[part] if is_sparse(X) else np.require(X[part], requirements=["C", "A"])


def _within_rows(blocks: Sequence[Rows], means: Vector) -> Vector:
    """Return Σ (x − mean of the row)² over the entries of every row."""
    ends = np.cumsum([block.shape[0] for block in blocks])[:-1]
    parts = zip(blocks, np.split(means, ends), strict=True)
    return np.concatenate([_squared_deviations(block, own) for block, own in parts])


def _squared_deviations(block: Rows, means: Vector) -> Vector:
    deviations = block.astype(np.float64)
    if not is_sparse(block):
        deviations -= means[:, np.newaxis]
        return squared_norms(deviations)
    stored = np.diff(block.indptr)
    deviations.data -= np.repeat(means, stored)
    # Entries that are not stored are zeros: they deviate by the mean itself.
    absent: Vector = (block.shape[1] - stored) * means**2
    return squared_norms(deviations) + absent


def _row_sums(
    sums: Vector, within: Vector, columns: int, weights: Vector | None
) -> tuple[Fraction, Fraction] | None:
    """Return Σ w s and Σ w (q + s² / d) over rows of d entries with sums s and squares q."""
    weighted = [sums]
    if weights is not None:
        within = weights * within
        weighted = list(_exact_products(weights, sums))
    if not all(math.isfinite(float(np.abs(part).sum())) for part in (within, *weighted)):
        return None
    squares = sum((_exact_sum_of_products(part, sums) for part in weighted), Fraction())
    total = sum(map(_exact_sum, weighted), Fraction())
    return total, _exact_sum(within) + squares / columns


def _exact_sum(values: Float64) -> Fraction:
    """Return Σ v: rounded correctly, then what that is away from the sum, and so on."""
    entries, total = values.tolist(), Fraction()
    while part := math.fsum(entries):
        total += Fraction(part)
        entries.append(-part)
    return total


def _exact_sum_of_products(a: Vector, b: Vector) -> Fraction:
    """Return Σ a b."""
    size = np.abs(a * b)
    zero = (a == 0.0) | (b == 0.0)
    usual = zero | ((size > _LEAST_PRODUCT) & (size < _LARGEST_PRODUCT))
    products = _exact_products(np.where(usual, a, 0.0), np.where(usual, b, 0.0))
    others = zip(a[~usual].tolist(), b[~usual].tolist(), strict=True)
    rest = (Fraction(x) * Fraction(y) for x, y in others)
    return _exact_sum(np.concatenate(products)) + sum(rest, Fraction())


def _exact_products(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Return a b rounded, and the rounding errors: Dekker's product."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _halves(a: Vector) -> tuple[Vector, Vector]:
    scaled = _SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high
