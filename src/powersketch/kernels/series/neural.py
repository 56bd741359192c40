"""The power series of arc-cosine and neural tangent kernels in the cosine of two rows."""

from __future__ import annotations

import decimal
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError
from powersketch.kernels.kappa import kappa_0, kappa_1, kappa_2, kappas_0_and_1
from powersketch.kernels.series.infinite import InfiniteSeries
from powersketch.kernels.series.positive import PositiveSeries
from powersketch.kernels.series.power_series import UNIT, product_of_powers
from powersketch.parameters import (
    checked_integer,
    checked_non_negative,
    checked_positive,
    checked_truth,
)

__all__ = ["arc_cosine_series", "neural_tangent_series"]

# A layer's value takes an arccosine, a square root and a few operations: far fewer roundings.
_SAFE_FACTOR = 1.0 + 64 * UNIT
_KAPPAS = (kappa_0, kappa_1, kappa_2)
_AT_ONE = (1, 1, 3)
_INVERSE_PI = 0.3183098861837907  # rounded once, as 1 / math.pi need not be


class NeuralSeries(InfiniteSeries):
    """A series made of the functions kappa_n of cosines, one layer inside the other."""

    radius = 1.0
    closed = True

    def _coefficients(self, degree: int) -> NDArray[np.float64]:
        return self._table(degree).coefficients[: degree + 1]

    def _lower_terms(self, degree: int, t: float) -> NDArray[np.float64]:
        table = self._table(degree)
        lower = table.coefficients * np.maximum(1.0 - (table.roundings() + 3) * UNIT, 0.0)
        return product_of_powers(lower[: degree + 1], t)

    def _value(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._closed_form(t, 1.0)

    def _upper_value(self, t: float) -> float:
        # All functions increase, so that larger arguments give larger values, layer by layer.
        return float(self._closed_form(np.array(t), _SAFE_FACTOR))

    def _table(self, degree: int) -> PositiveSeries:
        return _cached_table(self, 1 << max(degree.bit_length(), 6))

    @abstractmethod
    def _expansion(self, size: int) -> PositiveSeries:
        """Return the first coefficients."""

    @abstractmethod
    def _closed_form(self, t: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
        """Return kappa(t), with arguments and values of every layer multiplied by the factor."""


@dataclass(frozen=True)
class ArcCosineSeries(NeuralSeries):
    """See `arc_cosine_series`."""

    order: int
    depth: int

    def _expansion(self, size: int) -> PositiveSeries:
        cosine, at_zero = PositiveSeries.identity(size), Decimal(0)
        for _ in range(self.depth - 1):
            kappa = _kappas_of(cosine, at_zero, self.order)[-1]
            at_zero = _kappas_at(at_zero)[self.order] / _AT_ONE[self.order]
            cosine = kappa.scaled(1.0 / _AT_ONE[self.order]).with_first(float(at_zero))
        return _kappas_of(cosine, at_zero, self.order)[-1].scaled(self._scale())

    def _closed_form(self, t: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
        kappa = _KAPPAS[self.order]
        for _ in range(self.depth - 1):
            t = kappa(t * factor) / _AT_ONE[self.order] * factor
        return kappa(t * factor) * self._scale() * factor

    def _scale(self) -> float:
        """Return the diagonal of the layer below the last, to the power of the order."""
        # k_h(x, x) = kappa(1) k_(h-1)(x, x)^n, and only order 2 has a kappa(1) other than one.
        return float(3 ** (2**self.depth - 2)) if self.order == 2 else 1.0


@dataclass(frozen=True)
class NeuralTangentSeries(NeuralSeries):
    """See `neural_tangent_series`."""

    depth: int
    train_output: bool
    weight_variance: float
    bias_variance: float
    squared_norm: float

    def _expansion(self, size: int) -> PositiveSeries:
        gain, diagonals = Decimal(self.weight_variance) / 2, self._diagonals()
        cosine, at_zero = PositiveSeries.identity(size), Decimal(0)
        tangent = cosine.scaled(float(diagonals[0]))
        for below, diagonal in pairwise(diagonals):
            slope, image = _kappas_of(cosine, at_zero, 1)
            share = gain * below / diagonal
            at_zero = 1 - share * (1 - _kappas_at(at_zero)[1])
            cosine = image.scaled(float(share)).with_first(float(at_zero))
            tangent = cosine.scaled(float(diagonal)) + (slope * tangent).scaled(float(gain))
        if self.train_output:
            return tangent
        return (_kappas_of(cosine, at_zero, 0)[0] * tangent).scaled(0.5)

    def _closed_form(self, t: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
        gain = 0.5 * self.weight_variance
        with decimal.localcontext(_wide_decimals()):
            diagonals = self._diagonals()
            layers = [(float(Decimal(gain) * a / b), float(b)) for a, b in pairwise(diagonals)]
        tangent = float(diagonals[0]) * t
        for share, diagonal in layers:
            slope, image = kappas_0_and_1(t * factor)
            # So written, the next cosine is exactly one where this one is.
            t = (1.0 - share * (1.0 - image)) * factor
            tangent = (diagonal * t + gain * slope * tangent) * factor
        if self.train_output:
            return tangent
        return 0.5 * kappa_0(t * factor) * tangent * factor

    def _diagonals(self) -> list[Decimal]:
        """Return S(x, x) of the input and of every layer that is trained together with its S."""
        gain, bias = Decimal(self.weight_variance) / 2, Decimal(self.bias_variance)
        diagonals = [gain * Decimal(self.squared_norm) + bias]
        for _ in range(self.depth if self.train_output else self.depth - 1):
            diagonals.append(gain * diagonals[-1] + bias)
        return diagonals


def arc_cosine_series(order: int, depth: int = 1) -> ArcCosineSeries:
    r"""Return the series of the arc-cosine kernel of rows of length one, in their cosine.

    Parameters
    ----------
    order : {0, 1, 2}
        The order n of the functions :math:`\kappa_n`, which are 1, 1 and 3 at one.
    depth : int, default=1
        The number of layers. Each is :math:`\kappa_n` of the cosine in the layer below, times the
        n-th power of the diagonal below.

    Returns
    -------
    ArcCosineSeries
        It converges for cosines from −1 to 1.

    Examples
    --------
    >>> from powersketch.kernels.series import arc_cosine_series
    >>> arc_cosine_series(order=1).coefficients(4)
    array([0.31830989, 0.5       , 0.15915494, 0.        , 0.01326291])
    >>> arc_cosine_series(order=1, depth=2).degree_for(1e-3, t=1.0)
    31
    """
    order = checked_integer("order", order, lowest=0, highest=2)
    # The diagonal of order 2 is 3^(2^depth − 1), a float64 up to 3^511.
    highest = 9 if order == 2 else None
    return ArcCosineSeries(order, checked_integer("depth", depth, lowest=1, highest=highest))


def neural_tangent_series(
    depth: int,
    train_output: bool = True,
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    squared_norm: float = 1.0,
) -> NeuralTangentSeries:
    r"""Return the series of the tangent kernel of a ReLU network, for rows of one length.

    It is a series in :math:`\rho_0`, the cosine of the rows :math:`(\sqrt{w/2} x, \sqrt{b})`, w
    and b being the two variances. With :math:`S_0 = T_0 = S_0(x, x) \rho_0`, every layer gives

    .. math::
        S' = \tfrac{w}{2} S(x, x) \kappa_1(\rho) + b, \quad
        T' = S' + \tfrac{w}{2} \kappa_0(\rho) T, \quad \rho = S / S(x, x).

    Parameters
    ----------
    depth : int
        The number of hidden layers.
    train_output : bool, default=True
        False leaves only :math:`T' = \tfrac12 \kappa_0(\rho) T` of the last layer: the network of
        [SWYZ21], of which the last layer is not trained.
    weight_variance : float, default=2.0
        Above 0.
    bias_variance : float, default=0.0
        At least 0.
    squared_norm : float, default=1.0
        The squared length of the rows, above 0.

    Returns
    -------
    NeuralTangentSeries
        It converges for cosines from −1 to 1.

    Examples
    --------
    >>> from powersketch.kernels.series import neural_tangent_series
    >>> series = neural_tangent_series(depth=1)
    >>> series.coefficients(4)
    array([0.31830989, 1.        , 0.47746483, 0.        , 0.06631456])
    >>> series.value([0.0, 1.0])
    array([0.31830989, 2.        ])
    """
    return NeuralTangentSeries(
        checked_integer("depth", depth, lowest=1),
        checked_truth("train_output", train_output),
        checked_positive("weight_variance", weight_variance),
        checked_non_negative("bias_variance", bias_variance),
        checked_positive("squared_norm", squared_norm),
    )


@lru_cache(maxsize=64)
def _cached_table(series: NeuralSeries, size: int) -> PositiveSeries:
    with decimal.localcontext(_wide_decimals()), np.errstate(over="ignore"):
        table = series._expansion(size)
    if not np.isfinite(table.coefficients).all():
        raise InputError(
            f"a coefficient of {series} is above the largest float64, "
            f"{np.finfo(np.float64).max:.3g}: choose a smaller depth, variance or squared_norm."
        )
    table.coefficients.flags.writeable = False
    return table


def _wide_decimals() -> decimal.Context:
    # With 50 digits the rounding to float64 is the only error that counts.
    return decimal.Context(prec=50)


def _kappas_of(inner: PositiveSeries, at_zero: Decimal, order: int) -> list[PositiveSeries]:
    """Return kappa_0, ..., kappa_order of a series, which is `at_zero` at zero.

    kappa_0'(s) = (1 − s²)^(−1/2) / π, kappa_1' = kappa_0 and kappa_2' = 4 kappa_1.
    """
    first = [float(value) for value in _kappas_at(at_zero)]
    slope = (inner * inner).inverse_sqrt_of_rest(float(1 - at_zero * at_zero))
    kappas = [slope.scaled(_INVERSE_PI).integral_along(inner, first[0])]
    for factor, value in ((1.0, first[1]), (4.0, first[2]))[:order]:
        kappas.append(kappas[-1].scaled(factor).integral_along(inner, value))
    return kappas


def _kappas_at(cosine: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """Return kappa_0, kappa_1 and kappa_2 of one cosine from 0 to 1 in the current precision."""
    pi = 2 * _arccos(Decimal(0))
    angle = pi - _arccos(cosine)
    sine = (1 - cosine * cosine).sqrt()
    first = (sine + cosine * angle) / pi
    second = (3 * cosine * sine + (1 + 2 * cosine * cosine) * angle) / pi
    return angle / pi, first, second


def _arccos(cosine: Decimal) -> Decimal:
    """Return the angle of a cosine from 0 to below 1 by Borchardt's means.

    They tend to sin(angle) / angle, and every step quarters the distance.
    """
    arithmetic, geometric = cosine, Decimal(1)
    for _ in range(2 * decimal.getcontext().prec):
        arithmetic = (arithmetic + geometric) / 2
        geometric = (arithmetic * geometric).sqrt()
    return (1 - cosine * cosine).sqrt() / geometric
