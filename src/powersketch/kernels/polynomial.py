"""The exact polynomial kernel, its power series, and sums of a kernel and a linear one."""

from __future__ import annotations

import decimal
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from powersketch.arrays import Float64, Real, Rows, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.rows import (
    MatrixLike,
    float64_block,
    in_float32,
    inner_products,
    or_float64,
    with_squared_norms,
)
from powersketch.kernels.series import CoefficientSeries, PowerSeries
from powersketch.kernels.series.power_series import wide_decimals
from powersketch.kernels.tiles import Preparation, Prepared, tile_edge
from powersketch.parameters import Gamma, checked_gamma, checked_integer, checked_non_negative
from powersketch.storable import storable

_HIGHEST_DEGREE = 2**30


@storable
@dataclass(frozen=True)
class Polynomial(Kernel):
    r"""The kernel :math:`k(x, y) = (\gamma \langle x, y \rangle + c_0)^p`.

    Parameters
    ----------
    degree : int, default=2
        The exponent p, at least 1.
    gamma : float, "scale" or "median", default=1.0
        Positive and finite. The names stand for numbers that :meth:`resolve` takes from the data.
    coef0 : float, default=0.0
        The constant :math:`c_0`, finite and not negative: a negative one is not a positive
        definite kernel.

    Examples
    --------
    >>> from powersketch.kernels import Polynomial
    >>> kernel = Polynomial(degree=3, gamma=0.5, coef0=1.0)
    >>> X = [[1.0, 2.0], [0.0, 4.0]]
    >>> kernel(X)
    array([[ 42.875, 125.   ],
           [125.   , 729.   ]])
    >>> kernel.diagonal(X)
    array([ 42.875, 729.   ])
    >>> kernel.product(X, [1.0, 2.0])
    array([ 292.875, 1583.   ])
    >>> kernel.power_series().coefficients()
    array([1.   , 1.5  , 0.75 , 0.125])
    """

    degree: int = 2
    gamma: Gamma = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", checked_integer("degree", self.degree, 1))
        if self.degree > _HIGHEST_DEGREE:
            raise InputError(
                f"degree={self.degree} is out of range; choose at most {_HIGHEST_DEGREE}: beyond "
                "it, the rounding errors of inner products alone decide on the values."
            )
        object.__setattr__(self, "gamma", checked_gamma(self.gamma))
        object.__setattr__(self, "coef0", checked_non_negative("coef0", self.coef0))

    def power_series(self) -> CoefficientSeries:
        r"""Return the kernel as a power series of the inner product.

        Returns
        -------
        CoefficientSeries
            With the coefficients :math:`C_l = \binom{p}{l} \gamma^l c_0^{p-l}`, so that
            :math:`k(x, y) = \sum_l C_l \langle x, y \rangle^l`.

        Raises
        ------
        ValueError
            Where a coefficient is too large for float64.

        Examples
        --------
        >>> Polynomial(degree=2, gamma=3.0, coef0=1.0).power_series().coefficients()
        array([1., 6., 9.])
        """
        self._check_resolved()
        coefficients = np.zeros(self.degree + 1)
        # Decimals have exponents without end, so that no factor overflows before the product.
        with decimal.localcontext(wide_decimals()):
            gamma, coef0 = decimal.Decimal(self.gamma), decimal.Decimal(self.coef0)
            binomial = 1
            for power in range(self.degree, -1, -1):
                constant = coef0 ** (self.degree - power) if power < self.degree else 1
                coefficients[power] = float(binomial * gamma**power * constant)
                binomial = binomial * power // (self.degree - power + 1)
        self._check_series_is_finite(coefficients)
        return CoefficientSeries(coefficients)

    def _check_series_is_finite(self, coefficients: Float64) -> None:
        overflowing = np.flatnonzero(np.isinf(coefficients))
        if overflowing.size:
            raise InputError(
                f"coefficient {overflowing[0]} of {self} is above the largest float64, "
                f"{np.finfo(np.float64).max:.3g}: choose a smaller degree, gamma or coef0."
            )

    def _rounded_preparation(self, X: Rows, Y: Rows) -> Preparation:
        return in_float32(self._preparation(X, Y))

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        return _integer_power(self._affine(products), self.degree)

    def _diagonal_values(self, sizes: Float64) -> Float64:
        return _integer_power(self._affine(sizes), self.degree)

    def _derivatives(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64]:
        slopes = np.full_like(products, self.gamma * self.degree)
        if self.degree > 1:
            slopes *= _integer_power(self._affine(products), self.degree - 1)
        return slopes, np.zeros_like(products)

    def _affine(self, products: Float64) -> Float64:
        affine: Float64 = self.gamma * products
        affine += self.coef0
        return affine

    def _overflow_text(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> str:
        bases = np.abs(self._affine(products))
        # A NaN is the difference of two infinities, as the input was found finite.
        largest = np.inf if np.isnan(bases).any() else bases.max()
        return (
            f"the kernel overflows {dtype}: a base |gamma <x, y> + coef0| is {largest:.6g}, "
            f"and its power degree={self.degree} must not be above {np.finfo(dtype).max:.3g}: "
            f"scale X or gamma down{or_float64(dtype)}."
        )


@storable
@dataclass(frozen=True)
class Linear(Polynomial):
    r"""The kernel :math:`k(x, y) = \langle x, y \rangle`, the polynomial one of degree 1.

    Examples
    --------
    >>> from powersketch.kernels import Linear
    >>> Linear()([[1.0, 2.0], [0.0, 4.0]])
    array([[ 5.,  8.],
           [ 8., 16.]])
    """

    degree: int = field(default=1, init=False, repr=False)
    gamma: Gamma = field(default=1.0, init=False, repr=False)
    coef0: float = field(default=0.0, init=False, repr=False)


@storable
@dataclass(frozen=True)
class WithLinear(Kernel):
    r"""The sum :math:`k(x, y) + w \langle x, y \rangle` of a kernel and a linear one.

    Functions of such a kernel have a linear part that is penalised by itself: away from all data
    they go on as straight lines where those of the Gaussian kernel fall to zero.

    Parameters
    ----------
    kernel : Kernel
        The kernel k. Its parameters are those of the sum, too: ``kernel__gamma`` is its gamma.
    weight : float, default=1.0
        The weight w, finite and not negative.

    Examples
    --------
    >>> from powersketch.kernels import Gaussian, WithLinear
    >>> kernel = WithLinear(Gaussian(gamma=0.5), weight=0.25)
    >>> X = [[1.0, 2.0], [0.0, 4.0]]
    >>> kernel(X).round(6)
    array([[2.25    , 2.082085],
           [2.082085, 5.      ]])
    >>> kernel.set_params(kernel__gamma=2.0)
    WithLinear(kernel=Gaussian(gamma=2.0), weight=0.25)
    """

    kernel: Kernel
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise InputTypeError(
                f"kernel={self.kernel!r} is a {type(self.kernel).__name__}; allowed are the "
                "kernels of powersketch.kernels: pass for instance Gaussian(gamma=0.5), or "
                "as_kernel(name)."
            )
        object.__setattr__(self, "weight", checked_non_negative("weight", self.weight))

    def resolve(self, X: MatrixLike) -> Self:
        """Return the sum with numbers for all parameters of its kernel; see `Kernel.resolve`."""
        return type(self)(self.kernel.resolve(X), self.weight)

    def power_series(self) -> PowerSeries:
        """Refuse: what is added has no place in the series of a kernel with factors or cosines."""
        raise InputTypeError(
            f"{self} is a sum of two kernels, which has no power series of its own: use that of "
            "its kernel, kernel.kernel.power_series(), and add the linear part to it."
        )

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        return _both(self.kernel._preparation(X, Y), with_squared_norms)

    def _rounded_preparation(self, X: Rows, Y: Rows) -> Preparation:
        return _both(self.kernel._rounded_preparation(X, Y), in_float32(with_squared_norms))

    def _tile(self, left: Prepared, right: Prepared, dtype: np.dtype[Any]) -> Real:
        values = self.kernel._tile(_inner(left), _inner(right), np.dtype(np.float64))
        linear = inner_products(left[0].plain, right[0].plain)
        linear *= self.weight
        return self._sum(values, linear, left[1], right[1], dtype)

    def _tile_of_products(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> Real:
        values = self.kernel._tile_of_products(products, left, right, np.dtype(np.float64))
        linear = self.weight * products
        return self._sum(values, linear, _Both(left, left), _Both(right, right), dtype)

    def _sum(
        self, values: Float64, linear: Float64, left: _Both, right: _Both, dtype: np.dtype[Any]
    ) -> Real:
        """Return the tile of the sum, in the memory of the values if the dtype allows it."""
        values += linear
        tile: Real = values.astype(dtype, copy=False)
        if not np.isfinite(tile).all():
            raise InputError(self._overflow_text(linear, left, right, dtype))
        return tile

    def _diagonal_values(self, sizes: Any) -> Float64:
        diagonal: Float64 = self.kernel._diagonal_values(sizes.inner) + self.weight * sizes.plain
        return diagonal

    def _gradient_blocks(
        self, X: Rows, Y: Rows, V: Float64, threads: int
    ) -> Generator[tuple[slice, Float64], None, None]:
        with np.errstate(over="ignore", invalid="ignore"):
            parts = slices(Y.shape[0], tile_edge(Y))
            sums = sum(float64_block(Y, part).T @ V[part] for part in parts)
            # The gradient of a linear function is the same everywhere.
            everywhere = self.weight * np.transpose(sums)
        for rows, gradients in self.kernel._gradient_blocks(X, Y, V, threads):
            gradients += everywhere
            yield rows, gradients

    def _overflow_text(self, products: Float64, left: Any, right: Any, dtype: np.dtype[Any]) -> str:
        return super()._overflow_text(products, left.plain, right.plain, dtype)

    def _check_resolved(self) -> None:
        self.kernel._check_resolved()


class _Both(NamedTuple):
    """Rows or sizes as the kernel of a sum has prepared them, and as they are."""

    inner: Any
    plain: Any


def _both(prepare: Preparation, prepare_plain: Preparation) -> Preparation:
    """Return the two preparations as one."""

    def both(X: Rows, rows: slice) -> Prepared:
        inner, plain = prepare(X, rows), prepare_plain(X, rows)
        return _Both(inner[0], plain[0]), _Both(inner[1], plain[1])

    return both


def _inner(prepared: Prepared) -> Prepared:
    return prepared[0].inner, prepared[1].inner


def _integer_power(base: Float64, exponent: int) -> Float64:
    """Raise to a power by repeated squaring, from the exponent's leading bit downwards.

    In this order no intermediate power is beyond the last one, so that nothing overflows unless
    the result does.
    """
    power = base.copy()
    for bit in f"{exponent:b}"[1:]:
        power *= power
        if bit == "1":
            power *= base
    return power
