"""The exact Gaussian kernel and its power series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse
from powersketch.exceptions import InputError
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.rows import (
    MatrixLike,
    in_float32,
    inner_products,
    rounded_inner_products,
    squared_distances_of_pairs,
)
from powersketch.kernels.series import PowerSeries, exponential_series
from powersketch.kernels.tiles import Preparation, Prepared
from powersketch.parameters import Gamma, checked_gamma
from powersketch.routines import gaussian_in_place, gaussian_values, squared_norms
from powersketch.storable import storable
from powersketch.validation import checked_matrix

# Where gamma · ‖x‖² is above this, rounding errors of inner products can be seen in the kernel.
_FAR = 2.0**20
_ROUNDING = 1e-12
_ZERO = 750.0  # exp(−750) is zero in float64
_MEDIAN_ROWS = 64


@storable
@dataclass(frozen=True)
class Gaussian(Kernel):
    r"""The kernel :math:`k(x, y) = \exp(-\gamma \|x - y\|^2)`.

    Parameters
    ----------
    gamma : float, "scale" or "median", default=1.0
        Positive and finite; :math:`1 / (2 \sigma^2)` for a standard deviation :math:`\sigma`.
        The names stand for numbers that :meth:`resolve` takes from the data.

    Notes
    -----
    Distances come from norms and inner products, where rows far from the origin lose digits to
    cancellation. The kernel does not change if all rows are shifted, so that dense rows are taken
    relative to the median of some rows of X, which no outlier moves. Sparse rows are not shifted,
    as they would no longer be sparse. The distances of pairs of rows that are still far from the
    origin come from their differences.

    Examples
    --------
    >>> from powersketch.kernels import Gaussian
    >>> kernel = Gaussian(gamma=0.5)
    >>> X = [[1.0, 2.0], [0.0, 4.0]]
    >>> kernel(X).round(6)
    array([[1.      , 0.082085],
           [0.082085, 1.      ]])
    >>> kernel.diagonal(X)
    array([1., 1.])
    """

    gamma: Gamma = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", checked_gamma(self.gamma))

    def power_series(self) -> PowerSeries:
        r"""Return the power series of :math:`\exp(2 \gamma t)` in the inner product t.

        Returns
        -------
        PowerSeries
            With the coefficients :math:`(2 \gamma)^l / l!`, so that :math:`k(x, y) =
            e^{-\gamma \|x\|^2} e^{-\gamma \|y\|^2} \sum_l \frac{(2 \gamma)^l}{l!}
            \langle x, y \rangle^l`: the kernel is not a power series itself, but one between
            factors that depend on one row each.

        Examples
        --------
        >>> Gaussian(gamma=0.5).power_series().coefficients(3)
        array([1.        , 1.        , 0.5       , 0.16666667])
        """
        self._check_resolved()
        return exponential_series(2.0 * self.gamma)

    def diagonal(self, X: MatrixLike) -> Real:
        """Return ones, the values of the kernel at equal rows; see :meth:`Kernel.diagonal`."""
        X = checked_matrix("X", X)
        return np.ones(X.shape[0], X.dtype)

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        if is_sparse(X) or is_sparse(Y):
            return super()._preparation(X, Y)
        centre = median_row(X)

        def shifted(X: Rows, rows: slice) -> Prepared:
            differences = np.subtract(X[rows], centre, order="C")
            return differences, squared_norms(differences)

        return shifted

    def _rounded_preparation(self, X: Rows, Y: Rows) -> Preparation:
        return in_float32(self._preparation(X, Y))

    def _tile(self, left: Prepared, right: Prepared, dtype: np.dtype[Any]) -> Real:
        tile = rounded_inner_products(left[0], right[0])
        if tile.dtype == dtype and tile.flags.c_contiguous:
            # The products are nobody else's.
            sizes = np.ascontiguousarray(left[1]), np.ascontiguousarray(right[1])
            gaussian_in_place(tile, *sizes, self.gamma)
            self._check(tile, left[1], right[1])
        else:
            exact = tile.astype(np.float64, copy=False)
            tile = self._rounded_values(exact, left[1], right[1], dtype)
        far_left = np.flatnonzero(self.gamma * left[1] > _FAR)
        far_right = np.flatnonzero(self.gamma * right[1] > _FAR)
        if len(far_left) and len(far_right):
            rows, columns = left[0][far_left], right[0][far_right]
            sizes = np.add.outer(left[1][far_left], right[1][far_right])
            distances = sizes - 2.0 * inner_products(rows, columns)
            doubtful = self.gamma * (distances - _ROUNDING * sizes) < _ZERO
            for i, j, exact in squared_distances_of_pairs(rows, columns, doubtful):
                tile[far_left[i], far_right[j]] = np.exp(-self.gamma * exact)
        return tile

    def _derivative_tile(self, left: Prepared, right: Prepared) -> tuple[Float64, Float64]:
        # The gradient by x is 2 gamma k (y − x), for shifted rows as well.
        by_right = self._tile(left, right, np.dtype(np.float64))
        by_right *= 2.0 * self.gamma
        return by_right, -by_right

    def _rounded_values(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> Real:
        # Products of dense with sparse rows lie in columns, and given norms may have gaps.
        products, left, right = map(np.ascontiguousarray, (products, left, right))
        tile: Real = gaussian_values(products, left, right, self.gamma, dtype)
        self._check(tile, left, right)
        return tile

    def _check(self, tile: Real, left: Float64, right: Float64) -> None:
        """Refuse rows so large that norms or products exceed float64, which leaves NaN."""
        # Other entries are numbers from zero to one.
        if np.isnan(tile.min(initial=1.0)):
            raise InputError(self._overflow_text(tile, left, right, tile.dtype))

    def _diagonal_values(self, sizes: Float64) -> Float64:
        return np.ones_like(sizes)


def median_row(X: Rows) -> Vector:
    """Return the median of every column over up to 64 rows, evenly spaced.

    It is a centre that no outlier among the rows can move far.

    Of an even number of entries it is the lower of the two in the middle: their mean might
    overflow. Columns of sparse rows of which most entries are not stored have the median zero.
    """
    count = X.shape[0]
    sample = X[np.linspace(0, count - 1, min(count, _MEDIAN_ROWS)).astype(np.int64)]
    medians = np.zeros(X.shape[1])
    if is_sparse(X):
        stored = np.bincount(sample.indices, minlength=X.shape[1])
        columns = np.flatnonzero(2 * stored >= sample.shape[0])
        medians[columns] = _lower_medians(sample[:, columns].toarray())
    else:
        medians[:] = _lower_medians(sample)
    return medians


def _lower_medians(rows: Real) -> Real:
    middle = (len(rows) - 1) // 2
    medians: Real = np.partition(rows, middle, axis=0)[middle]
    return medians
