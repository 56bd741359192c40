"""Rows on their way into a map: with a constant coordinate, brought near one, summed, refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from powersketch import routines
from powersketch.arrays import Rows, Vector, is_sparse, scaled_rows
from powersketch.exceptions import InputError
from powersketch.powers import Scaled, ShiftedRows, to_one
from powersketch.storable import storable

# Rows are brought near norm one by a power of two, exactly; float32 limits how far that can go.
_LARGEST_SHIFT = 120
# Squared norms in between are computed without loss.
_SMALLEST, _LARGEST = 1e-200, 1e200


@storable
@dataclass(frozen=True, eq=False, repr=False)
class AugmentedRows:
    """Rows x̃ = (√gamma · x, √coef0), whose inner products are gamma ⟨x, y⟩ + coef0."""

    gamma: float
    coef0: float

    @cached_property
    def root_gamma(self) -> float:
        """√gamma."""
        return math.sqrt(self.gamma)

    @cached_property
    def root_coef0(self) -> float:
        """√coef0."""
        return math.sqrt(self.coef0)

    @cached_property
    def extra_columns(self) -> int:
        """The number of coordinates that x̃ has beyond those of x."""
        return int(self.coef0 > 0)

    def squared_norms(self, X: Rows, threads: int) -> Vector:
        """Return ‖x̃‖² of every row."""
        return self.gamma * routines.squared_norms(X, threads=threads) + self.coef0

    def checked_norms(self, X: Rows, degree: int, threads: int) -> Vector:
        """Return the same, or refuse rows for which ‖x̃‖² to the power `degree` overflows."""
        squared_norms = self.squared_norms(X, threads)
        check_power(X, squared_norms, degree)
        return squared_norms

    def direction(self, columns: int) -> Vector | None:
        """Return the unit vector of the last coordinate, along which √coef0 is a shift."""
        return np.eye(1, columns + 1, columns)[0] if self.extra_columns else None

    def of(self, X: Rows, factor: float = 1.0) -> Rows:
        """Return factor · x̃ of every row in the dtype of X, sparse if the rows are."""
        scaled = X * X.dtype.type(self.root_gamma * factor)
        if not self.extra_columns:
            return scaled
        constant = np.full((X.shape[0], 1), self.root_coef0 * factor, dtype=X.dtype)
        if is_sparse(X):
            return sp.hstack([scaled, sp.csr_array(constant)], format="csr")
        return np.hstack([scaled, constant])


@dataclass(frozen=True, eq=False, repr=False)
class AffineRows:
    """u = scale · x + shift · direction for every row of a batch; no shift means no direction."""

    scale: Vector
    shift: Vector | None
    squared_norms: Vector

    def near_one(self, X: Rows) -> tuple[ShiftedRows, NDArray[np.int64]]:
        """Return the rows u times 2^−e, their norms near one, and the exponents e."""
        unit, exponents = near_one_factors(self.squared_norms)
        shift = None if self.shift is None else self.shift * unit
        return ShiftedRows(X, self.scale * unit, shift), exponents


def near_one_factors(squared_norms: Vector) -> tuple[Vector, NDArray[np.int64]]:
    """Return 2^−e that bring norms near one, and e."""
    exponents = np.minimum(
        np.maximum(np.frexp(squared_norms)[1] // 2, -_LARGEST_SHIFT), _LARGEST_SHIFT
    )
    return np.ldexp(1.0, -exponents), exponents.astype(np.int64)


def rows_near_one(X: Rows, threads: int = 1) -> Rows:
    """Return the rows, those of extreme size multiplied by powers of two to bring them near one."""
    squares = routines.squared_norms(X, threads=threads)
    extreme = (squares < _SMALLEST) | (squares > _LARGEST)
    if not extreme.any():
        return X
    largest = abs(X).max(axis=1)
    largest = largest.toarray().reshape(-1) if is_sparse(X) else largest
    factors, _ = to_one(largest, X.dtype)
    return scaled_rows(X, np.where(extreme & (largest > 0), factors, 1.0))


# The norms tell whether the entries of rows are finite and their kernel values within the dtype:
# no pass over the data is needed for it.


def check_power(X: Rows, squared_norms: Vector, degree: int) -> None:
    """Refuse rows for which (gamma ‖x‖² + coef0)^degree overflows the dtype of X."""
    largest = float(squared_norms.max(initial=0.0))
    limit = float(np.finfo(X.dtype).max)
    if largest <= 1.0:
        return
    # Logarithms decide where it is clear, and products where rounding errors might.
    if math.isfinite(largest) and (
        degree * math.log2(largest) < math.log2(limit) - 1.0
        or Scaled.of(np.array(largest)).power(degree).to_float() <= limit
    ):
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        f"the kernel value overflows {X.dtype}: the largest gamma * ||x||^2 + coef0 is "
        f"{largest:.6g}, and its power {degree} exceeds {limit:.3g}. "
        f"Scale the rows of X (for instance to unit norm) or lower gamma{_wider(X)}."
    )


def check_norms(X: Rows, squared_norms: Vector) -> None:
    """Refuse rows whose squared norms are not finite."""
    if math.isfinite(squared_norms.max(initial=0.0)):
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        "the squared norm of a row exceeds the largest float64, "
        f"{np.finfo(np.float64).max:.3g}: scale the rows of X."
    )


def check_values(X: Rows, values: Vector) -> None:
    """Refuse rows whose value of the kernel with themselves overflows the dtype of X."""
    largest, limit = float(values.max(initial=0.0)), float(np.finfo(X.dtype).max)
    if largest <= limit:
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        f"the kernel value overflows {X.dtype}: the largest k(x, x) is {largest:.6g}, above "
        f"{limit:.3g}. Scale the rows of X{_wider(X)}."
    )


def _wider(X: Rows) -> str:
    return "" if X.dtype == np.float64 else ", or pass X as float64"
