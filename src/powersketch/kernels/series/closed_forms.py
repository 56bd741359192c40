"""Power series given by coefficients, by a name with a closed form, or by rescaling another."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from powersketch.arrays import Float64, divide_or_zero
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.series.power_series import (
    TINY,
    UNIT,
    InfiniteSeries,
    PowerSeries,
    product_of_powers,
    wide_decimals,
)
from powersketch.parameters import checked_positive
from powersketch.storable import storable
from powersketch.validation import sound_array

# NumPy's functions are within four units in the last place, each of two roundings.
_FUNCTION_ROUNDINGS = 16


@storable
@dataclass(frozen=True, eq=False)
class CoefficientSeries(PowerSeries):
    r"""The polynomial :math:`\kappa(t) = \sum_{l=0}^{n} C_l t^l` with given coefficients.

    Parameters
    ----------
    all_coefficients : array-like of shape (n + 1,)
        :math:`C_0, \dots, C_n`, finite and not negative.

    Examples
    --------
    >>> from powersketch.kernels.series import CoefficientSeries
    >>> series = CoefficientSeries([1.0, 0.0, 0.5])
    >>> series.value([0.0, 2.0])
    array([1., 3.])
    >>> series.coefficients()
    array([1. , 0. , 0.5])
    >>> series.tail_bound(2, 10.0)
    0.0
    """

    all_coefficients: Any

    radius = math.inf
    closed = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "all_coefficients", _checked_coefficients(self.all_coefficients))

    def __repr__(self) -> str:
        return f"CoefficientSeries({np.array2string(self.all_coefficients, threshold=8)})"

    def coefficients(self, degree: int | None = None) -> Float64:
        r"""Return :math:`C_0, \dots, C_q`, zero beyond the last of the series.

        Parameters
        ----------
        degree : int, default=None
            The last index q, at least 0. None means the last of the series.

        Returns
        -------
        ndarray of shape (degree + 1,)
            Never negative.
        """
        if degree is None:
            return np.array(self.all_coefficients, dtype=np.float64)
        return super().coefficients(degree)

    def _coefficients(self, degree: int) -> Float64:
        padded = np.zeros(degree + 1)
        kept = self.all_coefficients[: degree + 1]
        padded[: kept.size] = kept
        return padded

    def _value(self, t: Float64) -> Float64:
        return _horner(self.all_coefficients, t)

    def _derivative(self, t: Float64) -> Float64:
        degrees = np.arange(1.0, self.all_coefficients.size)
        return _horner(np.append(degrees * self.all_coefficients[1:], 0.0), t)

    def _tail_bounds(self, degree: int, t: float) -> Float64:
        """Add what follows, smallest degree last, as there is an end to begin from."""
        terms = product_of_powers(self.all_coefficients, t)
        terms[(terms < TINY) & (self.all_coefficients > 0.0)] = TINY if t > 0.0 else 0.0
        terms[1:] *= 1.0 + 4 * terms.size * UNIT
        following = np.cumsum(terms[:0:-1])[::-1][: degree + 1]
        tails = np.zeros(degree + 1)
        tails[: following.size] = following
        return tails

    def _rate(self, t: float) -> float:
        return math.inf


class RescaledSeries(PowerSeries):
    r"""The series :math:`\kappa(\gamma t)` in powers of t.

    Parameters
    ----------
    series : PowerSeries
        :math:`\kappa`.
    gamma : float
        Positive.
    """

    def __init__(self, series: PowerSeries, gamma: float) -> None:
        self.radius, self.closed = series.radius / gamma, series.closed
        self._series, self._gamma = series, gamma

    def __repr__(self) -> str:
        return f"{self._series} of {self._gamma:g} t"

    def _coefficients(self, degree: int) -> Float64:
        return product_of_powers(self._series._coefficients(degree), self._gamma)

    def _terms(self, degree: int, t: float) -> Float64:
        return self._series._terms(degree, self._inner(t))

    def _value(self, t: Float64) -> Float64:
        radius = self._series.radius
        return self._series._value(np.clip(self._gamma * t, -radius, radius))

    def _derivative(self, t: Float64) -> Float64:
        radius = self._series.radius
        return self._gamma * self._series._derivative(np.clip(self._gamma * t, -radius, radius))

    def _tail_bounds(self, degree: int, t: float) -> Float64:
        return self._series._tail_bounds(degree, self._inner(t))

    def _rate(self, t: float) -> float:
        return self._series._rate(self._inner(t))

    def _inner(self, t: float) -> float:
        return min(self._gamma * t, self._series.radius)


@dataclass(frozen=True)
class RatioSeries(InfiniteSeries):
    r"""A series :math:`f(s t)` given by the ratios of the coefficients of f.

    Parameters
    ----------
    name : str
        What to call it in messages.
    function : callable
        f, increasing on :math:`t \ge 0`.
    slope : callable
        Its derivative.
    first : {0, 1}
        The index of the first coefficient of f that is not zero. It is one.
    stride : int
        Only every ``stride``-th coefficient is not zero.
    ratio : callable
        Maps l to two integers, the quotient of which is :math:`C_{l + stride} / C_l`. It must be
        monotone in l.
    limit : int
        The limit of the ratios.
    radius : float
        The radius of convergence.
    closed : bool, default=False
        Whether the series converges there.
    scale : float, default=1.0
        The factor s, positive and finite. It must be one unless the radius is infinite.
    """

    name: str
    function: Callable[[Float64], Float64]
    slope: Callable[[Float64], Float64]
    first: int
    stride: int
    ratio: Callable[[int], tuple[int, int]]
    limit: int
    radius: float
    closed: bool = False
    scale: float = 1.0

    def __repr__(self) -> str:
        return self.name if self.scale == 1.0 else f"{self.name}({self.scale!r} t)"

    def _coefficients(self, degree: int) -> Float64:
        coefficients = self._terms(degree, 1.0)
        if np.isinf(coefficients).any():
            raise InputError(
                f"coefficient {np.argmax(np.isinf(coefficients))} of {self} is above the largest "
                f"float64, {np.finfo(np.float64).max:.3g}: scale the data up and the kernel down."
            )
        return coefficients

    def _terms(self, degree: int, t: float) -> Float64:
        return _term_table(self, t, 1 << degree.bit_length())[: degree + 1]

    def _lower_terms(self, degree: int, t: float) -> Float64:
        return self._terms(degree, t) * (1.0 - 4 * UNIT)

    def _value(self, t: Float64) -> Float64:
        return np.asarray(self.function(self.scale * t))

    def _derivative(self, t: Float64) -> Float64:
        return self.scale * np.asarray(self.slope(self.scale * t))

    def _upper_value(self, t: float) -> float:
        argument = self.scale * t
        if self.scale != 1.0:
            argument = math.nextafter(argument, math.inf)
        with np.errstate(over="ignore", divide="ignore"):
            value = float(self.function(np.array(argument)))
        return value * (1.0 + _FUNCTION_ROUNDINGS * UNIT)

    def _analytic_bounds(self, degree: int, t: float) -> Float64:
        """Bound a tail by a geometric series that begins with the same term and falls slower."""
        bounds = np.full(degree + 1, np.inf)
        with decimal.localcontext(wide_decimals()):
            argument = Decimal(self.scale) * Decimal(t)
            step, term = argument**self.stride, argument if self.first else Decimal(1)
            for index in range(self.first, degree + self.stride + 1, self.stride):
                numerator, denominator = self.ratio(index)
                largest = max(Decimal(numerator) / denominator, Decimal(self.limit)) * step
                if largest < 1:
                    omitted_first = slice(max(index - self.stride, 0), index)
                    bounds[omitted_first] = float(term / (1 - largest))
                term = term * step * numerator / denominator
        return np.maximum(bounds * (1.0 + 4 * UNIT), TINY)


@lru_cache(maxsize=64)
def _term_table(series: RatioSeries, t: float, size: int) -> Float64:
    """Return the first C_l t^l, each rounded once, which may make it zero or infinite."""
    table = np.zeros(size)
    with decimal.localcontext(wide_decimals()):
        argument = Decimal(series.scale) * Decimal(t)
        step, term = argument**series.stride, argument if series.first else Decimal(1)
        for index in range(series.first, size, series.stride):
            table[index] = float(term)
            numerator, denominator = series.ratio(index)
            term = term * step * numerator / denominator
    table.flags.writeable = False
    return table


def _over_next(index: int) -> tuple[int, int]:
    return 1, index + 1


def _over_next_two(index: int) -> tuple[int, int]:
    return 1, (index + 1) * (index + 2)


def _one(index: int) -> tuple[int, int]:
    return 1, 1


def _central_binomials(index: int) -> tuple[int, int]:
    return 2 * index + 1, 2 * index + 2


def _reciprocals(index: int) -> tuple[int, int]:
    return index, index + 1


def _central_binomials_over_odd(index: int) -> tuple[int, int]:
    return index * index, (index + 1) * (index + 2)


def _inverse(t: Float64) -> Float64:
    return 1.0 / (1.0 - t)


def _inverse_sqrt(t: Float64) -> Float64:
    return 1.0 / np.sqrt(1.0 - t)


def _logarithm(t: Float64) -> Float64:
    return -np.log1p(-t)


def _inverse_square(t: Float64) -> Float64:
    return 1.0 / (1.0 - t) ** 2


def _inverse_sqrt_slope(t: Float64) -> Float64:
    return 0.5 / ((1.0 - t) * np.sqrt(1.0 - t))


def _arcsin_slope(t: Float64) -> Float64:
    """Return (1 − t²)^(−1/2), and zero at ±1 or as near as the inner products of rows may be."""
    squares = (1.0 - t) * (1.0 + t)
    return np.sqrt(divide_or_zero(1.0, np.where(squares > 128 * UNIT, squares, 0.0)))


def _horner(coefficients: Float64, t: Float64) -> Float64:
    values = np.full(t.shape, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        values *= t
        values += coefficient
    return values


# "inverse" is 1/(1 − t), "inverse_sqrt" its square root and "log" −log(1 − t).
NAMED_SERIES: dict[str, RatioSeries] = {
    "exp": RatioSeries("exp", np.exp, np.exp, 0, 1, _over_next, limit=0, radius=math.inf),
    "cosh": RatioSeries("cosh", np.cosh, np.sinh, 0, 2, _over_next_two, limit=0, radius=math.inf),
    "sinh": RatioSeries("sinh", np.sinh, np.cosh, 1, 2, _over_next_two, limit=0, radius=math.inf),
    "inverse": RatioSeries("inverse", _inverse, _inverse_square, 0, 1, _one, limit=1, radius=1.0),
    "inverse_sqrt": RatioSeries(
        "inverse_sqrt",
        _inverse_sqrt,
        _inverse_sqrt_slope,
        0,
        1,
        _central_binomials,
        limit=1,
        radius=1.0,
    ),
    "log": RatioSeries("log", _logarithm, _inverse, 1, 1, _reciprocals, limit=1, radius=1.0),
    "arcsin": RatioSeries(
        "arcsin",
        np.arcsin,
        _arcsin_slope,
        1,
        2,
        _central_binomials_over_odd,
        limit=1,
        radius=1.0,
        closed=True,
    ),
}


def exponential_series(scale: float) -> RatioSeries:
    r"""Return the series :math:`e^{s t} = \sum_l s^l t^l / l!`.

    Parameters
    ----------
    scale : float
        The factor s, positive and finite.

    Returns
    -------
    RatioSeries
        Coefficients below the smallest float64 are zero.

    Examples
    --------
    >>> from powersketch.kernels.series import exponential_series
    >>> series = exponential_series(2.0)
    >>> series.coefficients(4)
    array([1.        , 2.        , 2.        , 1.33333333, 0.66666667])
    >>> series.degree_for(1e-6, t=1.0)
    12
    """
    return replace(NAMED_SERIES["exp"], scale=checked_positive("scale", scale))


def _checked_coefficients(coefficients: Any) -> Float64:
    checked = np.array(sound_array("the array of coefficients", coefficients))
    if checked.dtype.kind not in "biuf":
        raise InputTypeError(
            f"the coefficients have dtype {checked.dtype}; allowed are real numbers: "
            "convert with numpy.asarray(coefficients, dtype=float)."
        )
    checked = checked.astype(np.float64)
    if checked.ndim != 1 or checked.size == 0:
        raise InputError(
            f"the coefficients have shape {checked.shape}; allowed is (n + 1,) with n of at least "
            "0: pass C_0, ..., C_n in one list."
        )
    if not np.isfinite(checked).all():
        index = int(np.argmin(np.isfinite(checked)))
        raise InputError(
            f"coefficient {index} is {checked[index]}; allowed are finite numbers: replace it."
        )
    if (checked < 0.0).any():
        index = int(np.argmax(checked < 0.0))
        raise InputError(
            f"coefficient {index} is {checked[index]:.6g}: the kernel is not positive definite (a "
            "dot-product kernel is positive definite in every dimension only if all coefficients "
            "are at least 0): leave it out."
        )
    checked.flags.writeable = False
    return checked
