"""The exact arc-cosine kernels [CS09], the functions of cosines they are made of, their series."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from powersketch.arrays import Float64, Rows, divide_or_zero
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.rows import cosines, inner_products, normalised, pairs_near_one
from powersketch.kernels.series import PowerSeries
from powersketch.kernels.series.layers import (
    LayeredSeries,
    PositiveSeries,
    kappas_at,
    kappas_of,
)
from powersketch.kernels.tiles import Preparation
from powersketch.parameters import checked_integer, checked_positive
from powersketch.storable import storable

# With φ = π − arccos α, π κ₁ = sin φ − φ cos φ and π κ₂ = φ (2 + cos 2φ) − 3/2 sin 2φ, whose terms
# cancel where φ is small: there φ³ and φ⁵ times a power series of φ² take over. Up to φ = 1 what is
# left after these terms is below the rounding errors.
_SMALL_ANGLE = 1.0
_KAPPA_1_SERIES = [
    (-1) ** (k + 1) * 2 * k / (math.pi * math.factorial(2 * k + 1)) for k in range(1, 15)
]
_KAPPA_2_SERIES = [
    (-1) ** k * (k - 1) * 2 ** (2 * k + 1) / (math.pi * math.factorial(2 * k + 1))
    for k in range(2, 16)
]
_PEAKS = (1, 1, 3)
_SMALLEST_ANGLE = 2.0**-26  # the cosine of a smaller one is one in float64


class CosineKernel(Kernel):
    """A kernel that is a function of the cosine of two rows and of their norms.

    The inner products that `_values` takes are cosines, the sizes are norms.
    """

    _size_name: ClassVar[str] = "norm"

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        return normalised

    def _products(self, left: Rows, right: Rows) -> Float64:
        return cosines(left, right)

    def _from_squared_norms(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64, Float64]:
        norms = np.sqrt(left), np.sqrt(right)
        scales = np.outer(*norms)
        quotients = divide_or_zero(products, scales)
        return np.clip(quotients, -1.0, 1.0), *norms


@storable
@dataclass(frozen=True)
class ArcCosine(CosineKernel):
    r"""The arc-cosine kernel of order n, that of a wide network with activation max(0, t)^n.

    One layer is :math:`k_1(x, y) = (\|x\| \|y\|)^n \kappa_n(\cos\angle(x, y))`; a further one is

    .. math:: k_{h+1}(x, y) = (k_h(x, x)\, k_h(y, y))^{n/2}\, \kappa_n(\rho_h), \quad
              \rho_h = k_h(x, y) / \sqrt{k_h(x, x)\, k_h(y, y)}.

    With :math:`\theta = \arccos\alpha`,

    .. math:: \kappa_0(\alpha) = 1 - \theta / \pi, \quad
              \kappa_1(\alpha) = (\sin\theta + (\pi - \theta) \cos\theta) / \pi, \quad
              \kappa_2(\alpha) = (\tfrac32 \sin 2\theta + (\pi-\theta)(2 + \cos 2\theta)) / \pi,

    each of which is twice an expectation over standard normal weights. At 1 they are 1, 1 and 3. A
    zero row has no angle: its entries are zero, for order 0 too.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        The exponent n: steps, rectified linear units or their squares.
    depth : int, default=1
        The number of hidden layers, at least 1.

    Notes
    -----
    Order 0 has square-root singularities where the cosine is 1 or -1. Equal rows have exactly the
    cosine 1; but rows whose directions differ by rounding errors only differ by 1e-8 in the
    kernel of one layer, and by the square root of that in the kernel of two.

    Examples
    --------
    >>> from powersketch.kernels import ArcCosine
    >>> X = [[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]]
    >>> ArcCosine()(X).round(6)
    array([[25.      ,  8.271197,  0.      ],
           [ 8.271197,  4.      ,  0.      ],
           [ 0.      ,  0.      ,  0.      ]])
    >>> ArcCosine(order=2, depth=2).diagonal(X)
    array([1.0546875e+07, 6.9120000e+03, 0.0000000e+00])
    """

    order: int = 1
    depth: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", checked_integer("order", self.order, 0, 2))
        object.__setattr__(self, "depth", checked_integer("depth", self.depth, 1))

    def power_series(self) -> PowerSeries:
        """Return the kernel of rows of norm one as a power series of their cosine.

        Returns
        -------
        PowerSeries
            That of :meth:`profile`.

        Examples
        --------
        >>> ArcCosine(order=1).power_series().coefficients(4).round(6)
        array([0.31831 , 0.5     , 0.159155, 0.      , 0.013263])
        """
        # The diagonal of order 2 is 3^(2^depth − 1), a float64 up to 3^511.
        highest = 9 if self.order == 2 else None
        return ArcCosineSeries(self.order, checked_integer("depth", self.depth, 1, highest))

    def profile(self, cosines: ArrayLike, squared_norm: float = 1.0) -> Float64:
        """Return the kernel of two rows of the same norm as a function of their cosine.

        Parameters
        ----------
        cosines : array-like
            What lies outside [-1, 1] counts as the nearer end.
        squared_norm : float, default=1.0
            The squared norm of both rows, positive and finite.

        Returns
        -------
        ndarray of the same shape
            In float64.

        Examples
        --------
        >>> ArcCosine(order=1).profile([-1.0, 0.0, 1.0]).round(6)
        array([0.     , 0.31831, 1.     ])
        """
        squared_norm = checked_positive("squared_norm", squared_norm)
        scale = self._scales(np.asarray(self._magnitudes(np.asarray(squared_norm))))
        return scale * self._correlations(cosines, self.depth)

    def _products(self, left: Rows, right: Rows) -> Float64:
        """Return the cosines; for order 0, ±(1 + angle / π) where the angle is close to zero.

        In float64 the cosine of an angle of 1e-8 is one, and further layers would magnify the
        error by taking roots.
        """
        if self.order > 0:
            return super()._products(left, right)
        products = inner_products(left, right)
        for rows, columns, signs, distances in pairs_near_one(products, left, right):
            angles = 2.0 * np.arcsin(np.minimum(0.5 * np.sqrt(distances), 1.0))
            products[rows, columns] = signs * (1.0 + angles / math.pi)
        return products

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        magnitudes = self._magnitudes(left)[:, np.newaxis] * self._magnitudes(right)
        values = self._scales(magnitudes)
        if self.order > 0:
            values *= self._correlations(products, self.depth)
            return values
        values *= self._correlations(_kappa_0_of_marked(products), self.depth - 1)
        return values

    def _derivatives(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64]:
        """Return A and B for rows of norm one: cosines have the gradient (y − cos · x) / ‖x‖."""
        cosines, slopes = _clipped(products), np.ones_like(products)
        correlations = cosines
        for layer in range(self.depth):
            correlations, factors = _kappa_and_slope(self.order, correlations)
            if layer == 0 and self.order == 0:
                correlations = _kappa_0_of_marked(products)
                cosines, factors = _with_marked(cosines, factors, products)
            correlations, slopes = correlations / self._peak, slopes * factors / self._peak
        scales = self._scales_over_norms(left[:, np.newaxis], right)
        by_cosines = scales * slopes
        # The scale is this power of ‖x‖.
        by_norms = self.order**self.depth * scales * correlations
        return by_cosines, by_norms - cosines * by_cosines

    def _diagonal_values(self, sizes: Float64) -> Float64:
        return self._scales(self._magnitudes(sizes) ** 2)

    def _magnitudes(self, norms: Float64) -> Float64:
        """Return what the kernel still knows of a row's norm: for order 0 whether it is zero."""
        return np.sign(norms) if self.order == 0 else norms

    def _scales(self, magnitudes: Float64) -> Float64:
        """Return √(k(x, x) k(y, y)) from ‖x‖ ‖y‖."""
        scales = magnitudes
        for _ in range(self.depth):
            scales = _PEAKS[self.order] * scales ** max(self.order, 1)
        return scales

    def _scales_over_norms(self, left: Float64, right: Float64) -> Float64:
        """Return √(k(x, x) k(y, y)) / ‖x‖, zero where x is."""
        if self.order == 0:
            return divide_or_zero(np.sign(right), left + np.zeros_like(right))
        scales, quotients = left * right, right * np.sign(left)
        for _ in range(self.depth):
            quotients = self._peak * quotients * scales ** (self.order - 1)
            scales = self._peak * scales**self.order
        return quotients

    @property
    def _peak(self) -> int:
        return _PEAKS[self.order]

    def _correlations(self, cosines: ArrayLike, layers: int) -> Float64:
        """Return the cosine of two rows after this many layers."""
        kappa, peak = _KAPPAS[self.order], _PEAKS[self.order]
        for _ in range(layers):
            cosines = kappa(cosines) / peak
        return np.asarray(cosines)


@dataclass(frozen=True)
class ArcCosineSeries(LayeredSeries):
    """The arc-cosine kernel of rows of norm one in their cosine; it converges from −1 to 1."""

    order: int
    depth: int

    def _expansion(self, size: int) -> PositiveSeries:
        cosine, at_zero = PositiveSeries.identity(size), Decimal(0)
        for _ in range(self.depth - 1):
            kappa = kappas_of(cosine, at_zero, self.order)[-1]
            at_zero = kappas_at(at_zero)[self.order] / _PEAKS[self.order]
            cosine = kappa.scaled(1.0 / _PEAKS[self.order]).with_first(float(at_zero))
        return kappas_of(cosine, at_zero, self.order)[-1].scaled(self._scale())

    def _closed_form(self, t: Float64, factor: float) -> Float64:
        kappa = _KAPPAS[self.order]
        for _ in range(self.depth - 1):
            t = kappa(t * factor) / _PEAKS[self.order] * factor
        return kappa(t * factor) * self._scale() * factor

    def _scale(self) -> float:
        """Return the diagonal of the layer below the last, to the power of the order."""
        # k_h(x, x) = kappa(1) k_(h-1)(x, x)^n, and only order 2 has a kappa(1) other than one.
        return float(3 ** (2**self.depth - 2)) if self.order == 2 else 1.0


def kappa_0(cosines: ArrayLike) -> Float64:
    """Return κ₀(α) = 1 − arccos(α) / π, which is 1 at 1, in float64.

    Twice the probability that two standard normal variables of correlation α are positive. What
    lies outside [−1, 1] counts as the nearer end, here and below.
    """
    return _angles_to_opposite(_clipped(cosines)) / math.pi


def kappa_1(cosines: ArrayLike) -> Float64:
    """Return κ₁(α) = (sin θ + (π − θ) cos θ) / π with θ = arccos α, which is 1 at 1.

    Twice the expected product of two standard normal variables of correlation α, each cut off
    below zero. The relative error is small even next to the zero at −1.
    """
    return kappas_0_and_1(cosines)[1]


def kappa_2(cosines: ArrayLike) -> Float64:
    """Return κ₂(α) = (3/2 sin 2θ + (π − θ) (2 + cos 2θ)) / π with θ = arccos α, which is 3 at 1.

    As κ₁, for the squares of the variables that are cut off.
    """
    cosines = _clipped(cosines)
    angles = _angles_to_opposite(cosines)
    values = (3.0 * cosines * _sines(cosines) + angles * (1.0 + 2.0 * cosines**2)) / math.pi
    return _with_small_angles(values, angles, 5, _KAPPA_2_SERIES)


def kappas_0_and_1(cosines: ArrayLike) -> tuple[Float64, Float64]:
    """Return both functions for the price of one arc cosine."""
    cosines = _clipped(cosines)
    angles = _angles_to_opposite(cosines)
    values = (_sines(cosines) + cosines * angles) / math.pi
    return angles / math.pi, _with_small_angles(values, angles, 3, _KAPPA_1_SERIES)


def inverse_sines(cosines: Float64) -> Float64:
    """Return 1 / sin θ = π κ₀'(cos θ), and zero at ±1, where κ₀ has no derivative.

    There κ₀ is the tip of a cone as a function of rows, of which zero is the mean gradient.
    """
    return divide_or_zero(1.0, _sines(cosines))


def _kappa_and_slope(order: int, cosines: Float64) -> tuple[Float64, Float64]:
    """Return κ_n and its derivative, which is n² κ_(n−1) for n of 1 and 2 [CS09]."""
    if order == 0:
        return kappa_0(cosines), inverse_sines(cosines) / math.pi
    slopes, values = kappas_0_and_1(cosines)
    return (values, slopes) if order == 1 else (kappa_2(cosines), 4.0 * values)


def _kappa_0_of_marked(products: Float64) -> Float64:
    """Return κ₀ of cosines, some of which are marked as ±(1 + angle / π)."""
    values, excess = kappa_0(products), np.abs(products) - 1.0
    tiny = excess > 0.0
    values[tiny] = np.where(products[tiny] > 0.0, 1.0 - excess[tiny], excess[tiny])
    return values


def _with_marked(cosines: Float64, slopes: Float64, products: Float64) -> tuple[Float64, Float64]:
    """Return cosines and derivatives of κ₀ that are right where products are marked angles."""
    angles = math.pi * (np.abs(products) - 1.0)
    tiny = angles > 0.0
    cosines[tiny] *= np.cos(angles[tiny])
    # Gradients are differences of rows times these: below, rounding errors would be all of them.
    seen = tiny & (angles > _SMALLEST_ANGLE)
    slopes[tiny] = 0.0
    slopes[seen] = 1.0 / (math.pi * np.sin(angles[seen]))
    return cosines, slopes


def _clipped(cosines: ArrayLike) -> Float64:
    clipped: Float64 = np.clip(np.asarray(cosines, dtype=np.float64), -1.0, 1.0)
    return clipped


def _angles_to_opposite(cosines: Float64) -> Float64:
    """Return π − arccos α, which has all its digits next to α = −1 as well."""
    return np.arccos(-cosines)


def _sines(cosines: Float64) -> Float64:
    return np.sqrt((1.0 - cosines) * (1.0 + cosines))


def _with_small_angles(
    values: Float64, angles: Float64, power: int, series: list[float]
) -> Float64:
    small = angles < _SMALL_ANGLE
    values = np.asarray(values)
    values[small] = angles[small] ** power * polyval(angles[small] ** 2, series)
    return values


_KAPPAS: tuple[Callable[[ArrayLike], Float64], ...] = (kappa_0, kappa_1, kappa_2)
