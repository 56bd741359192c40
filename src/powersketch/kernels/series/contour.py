"""Power series of callables, from their values on circles around zero."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.exceptions import ComplexWarning
from numpy.typing import NDArray

from powersketch.arrays import Float64
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.series.power_series import UNIT, InfiniteSeries, product_of_powers
from powersketch.parameters import checked_integer, checked_positive

Function: TypeAlias = Callable[[Any], Any]

_LAST_DEGREE = 4096
# Pairs of circles as multiples of the radius. Far outside the disk the high coefficients are most
# precise, but a singularity must not lie inside the circle.
_OUTER_CIRCLES = ((4.0, 3.0), (2.0, 1.5), (1.25, 1.1))
_OUTER_POINTS = 2**14
# A singularity may lie on the edge of the disk. N points on the circle 1 − 37 / N let through
# aliases of e^−37 times the size of coefficients, while the error of coefficient l grows by
# e^(37 l / N), which is less than 4 at the last degree.
_INNER_POINTS = 2**17
_INNER_CIRCLES = (1.0 - 37.0 / _INNER_POINTS, 1.0 - 74.0 / _INNER_POINTS)

# What roundings may amount to, relative to the largest value in the disk.
_LARGEST_NOISE = 5e-14
_FUNCTION_ROUNDINGS = 64
_STEP = 2.0**-100


@dataclass(frozen=True, eq=False)
class ContourSeries(InfiniteSeries):
    """See `callable_series`.

    Attributes
    ----------
    function : callable
        The function itself.
    radius : float
        The series is for ``|t| <= radius``.
    circle : float
        The radius of the circle that the coefficients come from.
    noise : float
        The error of ``C_l * circle ** l``.
    table : ndarray
        The first ``C_l * radius ** l``.
    """

    function: Function
    radius: float
    circle: float
    noise: float
    table: Float64

    closed = True

    def __repr__(self) -> str:
        return f"callable_series({_name(self.function)}, radius={self.radius!r})"

    def coefficient_error(self, degree: int) -> Float64:
        """Return the absolute errors of C_l R^l up to a degree, R being the radius.

        The value at R is what to compare them with.
        """
        degree = checked_integer("degree", degree, lowest=0)
        return self.noise * _powers(self.radius / self.circle, degree + 1)

    def _coefficients(self, degree: int) -> Float64:
        return product_of_powers(self._scaled_coefficients(degree), 1.0 / self.radius)

    def _terms(self, degree: int, t: float) -> Float64:
        return product_of_powers(self._scaled_coefficients(degree), t / self.radius)

    def _lower_terms(self, degree: int, t: float) -> Float64:
        lower = self._scaled_coefficients(degree) - self.coefficient_error(degree)
        terms = product_of_powers(np.maximum(lower, 0.0), t / self.radius)
        return terms * (1.0 - (np.arange(degree + 1) + 4) * UNIT)

    def _scaled_coefficients(self, degree: int) -> Float64:
        if degree > _LAST_DEGREE and self.circle < self.radius:
            raise InputError(
                f"degree={degree} is out of range; the coefficients of {self} are known up to "
                f"{_LAST_DEGREE}: choose a smaller degree, or pass an array of coefficients."
            )
        # Outside the disk, what follows the table is far below the smallest float64.
        scaled = np.zeros(degree + 1)
        kept = self.table[: degree + 1]
        scaled[: kept.size] = kept
        return scaled

    def _value(self, t: Float64) -> Float64:
        return values_of(self.function, t)

    def _derivative(self, t: Float64) -> Float64:
        return slopes_of(self.function, t)

    def _upper_value(self, t: float) -> float:
        value = float(values_of(self.function, np.array([t]))[0])
        return value * (1.0 + _FUNCTION_ROUNDINGS * UNIT) + self.noise

    def _outer_argument(self) -> float:
        return max(self.circle, self.radius)


def callable_series(function: Function, radius: float = 1.0) -> ContourSeries:
    r"""Return the power series of a callable.

    The coefficients are Fourier coefficients of its values on a circle in the complex plane:
    outside the disk where there is no singularity, otherwise just inside.

    Parameters
    ----------
    function : callable
        Takes an array of complex or real numbers and returns one value for each. It must be
        analytic for ``|t| < radius`` and finite at the radius.
    radius : float, default=1.0
        The largest ``|⟨x, y⟩|``, that is, the largest squared norm of the data. Positive.

    Returns
    -------
    ContourSeries
        Its method ``coefficient_error`` states how precise the coefficients are.

    Raises
    ------
    TypeError
        Where the callable does not take complex arrays.
    ValueError
        Where it is not analytic in the disk, or a coefficient is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.kernels.series import callable_series
    >>> series = callable_series(lambda t: 1 / (2 - t))
    >>> series.coefficients(4)
    array([0.5    , 0.25   , 0.125  , 0.0625 , 0.03125])
    >>> callable_series(np.cos)
    Traceback (most recent call last):
    ...
    powersketch.exceptions.InputError: coefficient 2 of cos is -0.5: the kernel is not positive
    definite (a dot-product kernel is positive definite in every dimension only if all coefficients
    are at least 0).
    """
    radius = checked_positive("radius", radius)
    size = _largest_value(function, radius)
    reason: object = None
    for factors, points in _circles():
        try:
            scaled, noise = _consistent_coefficients(function, radius, factors, points, size)
        except _UnsuitableCircleError as unsuitable:
            reason = unsuitable
            continue
        table = _non_negative(function, radius, scaled, 2 * noise * _errors(factors[0]))
        return ContourSeries(function, radius, factors[0] * radius, 2 * noise, table)
    raise InputError(
        f"{_name(function)} is not the sum of a power series for |t| < {radius:.6g}: {reason}. "
        "Choose a function without singularities there, or a smaller radius."
    )


def values_of(function: Function, t: Float64) -> Float64:
    """Return the values of a callable at real arguments, or say what is wrong with them."""
    values = _called(function, t)
    if values.dtype.kind not in "biuf":
        raise InputTypeError(
            f"{_name(function)} returns {values.dtype} for real numbers; it must return real ones."
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise InputError(
            f"{_name(function)} is {values[wrong].flat[0]} at t={t[wrong].flat[0]:.6g}; it must be "
            "finite for all inner products of the data, positive or negative, and analytic, which "
            "sqrt, log and 1/t are not at 0: choose another function, or scale the data down."
        )
    return values.astype(np.float64)


def slopes_of(function: Function, t: Float64) -> Float64:
    """Return the derivative of an analytic callable at real arguments.

    A step into the complex plane is used, f(t + i h) = f(t) + i h f'(t) + …: nothing is
    subtracted, so that it can be as small as one likes.
    """
    values = _called(function, t + 1j * _STEP)
    if values.dtype.kind != "c" and np.ptp(values) > 0.0:
        raise InputTypeError(
            f"{_name(function)} returns {values.dtype} for complex numbers; a derivative exists "
            "for analytic functions only, which abs and real are not: choose another function."
        )
    return values_of(lambda _: values.imag / _STEP, t)


class _UnsuitableCircleError(Exception):
    """Says why the coefficients cannot be taken from a circle."""


def _circles() -> list[tuple[tuple[float, float], int]]:
    outer = [(factors, _OUTER_POINTS) for factors in _OUTER_CIRCLES]
    return [*outer, (_INNER_CIRCLES, _INNER_POINTS)]


def _largest_value(function: Function, radius: float) -> float:
    return float(np.abs(values_of(function, radius * np.array([-1.0, -0.5, 0.5, 1.0]))).max())


def _consistent_coefficients(
    function: Function, radius: float, factors: tuple[float, float], points: int, size: float
) -> tuple[Float64, float]:
    """Return C_l radius^l and the noise in C_l circle^l, if another circle agrees."""
    (first, noise), (second, other_noise) = (
        _fourier_coefficients(function, radius * factor, points) for factor in factors
    )
    if max(noise, other_noise) > _LARGEST_NOISE * size:
        raise _UnsuitableCircleError(
            f"on the circle |t| = {radius * factors[0]:.6g} the parts that a power series does not "
            "have are too large, so that there is a singularity inside or on it, as those of 1/t, "
            "sqrt and log at 0"
        )
    errors, other_errors = _errors(factors[0]), _errors(factors[1])
    scaled = first * errors
    if (np.abs(scaled - second * other_errors) > noise * errors + other_noise * other_errors).any():
        raise _UnsuitableCircleError(
            f"circles of radius {radius * factors[0]:.6g} and {radius * factors[1]:.6g} give "
            "different coefficients, so that it is not analytic, as abs and real are not"
        )
    if (np.abs(scaled.imag) > noise * errors).any():
        raise _UnsuitableCircleError("its coefficients are not real")
    _check_real_arguments(function, radius, scaled.real, size)
    return scaled.real, noise


def _fourier_coefficients(
    function: Function, circle: float, points: int
) -> tuple[NDArray[np.complex128], float]:
    """Return the first C_l circle^l and how much rounding and singularities add to each."""
    angles = 2.0 * np.pi / points * np.arange(points)
    values = _called(function, circle * np.exp(1j * angles))
    if not np.isfinite(values).all():
        raise _UnsuitableCircleError(f"it is not finite on the circle |t| = {circle:.6g}")
    coefficients = np.fft.fft(values) / points
    roundings = 4.0 * math.log2(points) * UNIT * _root_mean_square(np.abs(values))
    # A power series has no negative powers, which the last quarter stands for.
    surplus = np.abs(coefficients[-points // 4 :]).max()
    return coefficients[: _LAST_DEGREE + 1], max(roundings, 4.0 * float(surplus))


def _root_mean_square(sizes: Float64) -> float:
    largest = float(sizes.max())
    if largest == 0.0:
        return 0.0
    with np.errstate(under="ignore"):
        return largest * math.sqrt(np.mean((sizes / largest) ** 2))


def _check_real_arguments(function: Function, radius: float, scaled: Float64, size: float) -> None:
    arguments = np.array([-0.5, 0.5])
    sums = np.polynomial.polynomial.polyval(arguments, scaled)
    if (np.abs(sums - values_of(function, radius * arguments)) > 10 * _LARGEST_NOISE * size).any():
        raise _UnsuitableCircleError("its values for real and for complex numbers do not agree")


def _non_negative(
    function: Function,
    radius: float,
    scaled: Float64,
    errors: Float64,
) -> Float64:
    """Return the coefficients without what is below their error; refuse negative ones."""
    negative = scaled < -errors
    if negative.any():
        index = int(np.argmax(negative))
        coefficient = product_of_powers(scaled[: index + 1], 1.0 / radius)[index]
        raise InputError(
            f"coefficient {index} of {_name(function)} is {coefficient:.6g}: the kernel is not "
            "positive definite (a dot-product kernel is positive definite in every dimension only "
            "if all coefficients are at least 0)."
        )
    return np.where(scaled > errors, scaled, 0.0)


def _errors(factor: float) -> Float64:
    """Return what one on the circle of this multiple of the radius is on that of the radius."""
    return _powers(1.0 / factor, _LAST_DEGREE + 1)


def _powers(base: float, size: int) -> Float64:
    with np.errstate(under="ignore"):
        return np.power(base, np.arange(size, dtype=np.float64))


def _called(function: Function, t: NDArray[Any]) -> NDArray[Any]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error", ComplexWarning)
            values = np.asarray(function(t))
    except (TypeError, ComplexWarning) as error:
        raise InputTypeError(
            f"{_name(function)} cannot be called with a {t.dtype} array ({error}); it must accept "
            "complex NumPy arrays: write it with NumPy's functions, as numpy.exp for math.exp."
        ) from error
    except Exception as error:
        raise InputError(
            f"{_name(function)} raises {type(error).__name__} ({error}) for a {t.dtype} array; it "
            "must accept complex NumPy arrays: write it with NumPy's functions."
        ) from error
    if values.shape != t.shape:
        raise InputError(
            f"{_name(function)} returns shape {values.shape} for shape {t.shape}; it must return "
            "one value for every number it is given."
        )
    if values.dtype.kind not in "biufc":
        raise InputTypeError(f"{_name(function)} returns {values.dtype}; it must return numbers.")
    return values


def _name(function: Function) -> str:
    return str(getattr(function, "__name__", repr(function)))
