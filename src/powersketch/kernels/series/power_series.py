"""Power series with non-negative coefficients, and what is left when one is cut off."""

from __future__ import annotations

import decimal
import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powersketch.arrays import Float64
from powersketch.exceptions import InputError, InputTypeError
from powersketch.parameters import checked_integer, checked_positive

UNIT = 2.0**-53  # the largest relative error of one rounding
TINY = float(np.finfo(np.float64).tiny)

# Inner products of rows of length one exceed 1 by a few roundings.
_TOLERANCE = 64 * float(np.finfo(np.float64).eps)
_FIRST_GUESS = 64
_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite

# The rate of decay is that of the last range of degrees, unless it still grows.
_RANGES = ((128, 256), (256, 512), (512, 1024))
_SMALL_CHANGE = 0.05


class PowerSeries(ABC):
    r"""A function :math:`\kappa(t) = \sum_l C_l t^l` with all :math:`C_l \ge 0`.

    By Schoenberg's theorem these are the functions for which :math:`\kappa(\langle x, y \rangle)`
    is a positive definite kernel in every dimension.

    Attributes
    ----------
    radius : float
        The series converges for ``|t| < radius``, which may be infinite.
    closed : bool
        Whether it converges at ``|t| = radius`` too.
    """

    radius: float
    closed: bool

    def coefficients(self, degree: int) -> Float64:
        r"""Return :math:`C_0, \dots, C_q`.

        Parameters
        ----------
        degree : int
            The last index q, at least 0.

        Returns
        -------
        ndarray of shape (degree + 1,)
            Never negative.
        """
        return self._coefficients(checked_integer("degree", degree, lowest=0)).copy()

    def terms(self, degree: int, t: float) -> Float64:
        r"""Return :math:`C_0, C_1 t, \dots, C_q t^q`, also where a factor is beyond float64.

        Parameters
        ----------
        degree : int
            The last index q, at least 0.
        t : float
            The largest ``|⟨x, y⟩|``, that is, the largest squared norm of the data.

        Returns
        -------
        ndarray of shape (degree + 1,)
            Never negative.

        Raises
        ------
        ValueError
            Where a term is too large for float64.
        """
        degree = checked_integer("degree", degree, lowest=0)
        t = self._checked_argument(t)
        terms = self._terms(degree, t)
        if np.isinf(terms).any():
            raise InputError(
                f"term {np.argmax(np.isinf(terms))} of {self} is above the largest float64, "
                f"{np.finfo(np.float64).max:.3g}, at t={t:.6g}: scale the data down."
            )
        return terms.copy()

    def value(self, t: ArrayLike) -> Float64:
        r"""Return :math:`\kappa(t)` for every t.

        Parameters
        ----------
        t : array-like
            Numbers in the disk of convergence.

        Returns
        -------
        ndarray of the shape of t
            In float64.

        Raises
        ------
        ValueError
            Where a t lies outside the disk or the value is beyond float64.
        """
        return self._finite_values(self._value, t, f"{self}")

    def derivative(self, t: ArrayLike) -> Float64:
        r"""Return :math:`\kappa'(t)` for every t.

        Parameters
        ----------
        t : array-like
            Numbers in the disk of convergence.

        Returns
        -------
        ndarray of the shape of t
            In float64; zero where it would be infinite, at the end of a closed disk.

        Raises
        ------
        TypeError
            Where the series has no formula for it.
        ValueError
            Where a t lies outside the disk or the derivative is beyond float64.
        """
        return self._finite_values(self._derivative, t, f"the derivative of {self}")

    def _finite_values(
        self, function: Callable[[Float64], Float64], t: ArrayLike, name: str
    ) -> Float64:
        """Return the function's values in the disk; say so where they exceed float64."""
        t = np.asarray(t, dtype=np.float64)
        self._check_inside(t)
        with np.errstate(over="ignore", under="ignore"):
            values = function(np.clip(t, -self.radius, self.radius))
        if not np.isfinite(values).all():
            worst = t[~np.isfinite(values)].flat[0]
            raise InputError(
                f"{name} is above the largest float64 at t={worst:.6g}: scale the data down."
            )
        return values

    def tail_bound(self, degree: int, t: float) -> float:
        r"""Bound :math:`\sum_{l > q} C_l t^l`, what is lost if the series is cut off.

        Parameters
        ----------
        degree : int
            The last index q that is kept, at least 0.
        t : float
            The largest ``|⟨x, y⟩|``, that is, the largest squared norm of the data.

        Returns
        -------
        float
            A proven upper bound, roundings included. It does not grow with the degree.
        """
        degree = checked_integer("degree", degree, lowest=0)
        return float(self._tail_bounds(degree, self._checked_argument(t))[-1])

    def degree_for(self, eps: float, t: float, limit: int = 4096) -> int:
        r"""Return the smallest degree with ``tail_bound(degree, t) <= eps * value(t)``.

        Parameters
        ----------
        eps : float
            The relative error allowed, above 0.
        t : float
            The largest ``|⟨x, y⟩|``, that is, the largest squared norm of the data.
        limit : int, default=4096
            The largest degree to try.

        Returns
        -------
        int
            Between 0 and ``limit``.

        Raises
        ------
        ValueError
            Where no degree up to ``limit`` will do.
        """
        limit = checked_integer("limit", limit, lowest=0)
        t = self._checked_argument(t)
        allowed = checked_positive("eps", eps) * float(self.value(t))
        degree = min(_FIRST_GUESS, limit)
        while True:
            bounds = self._tail_bounds(degree, t)
            if bounds[-1] <= allowed:
                return int(np.argmax(bounds <= allowed))
            if degree == limit:
                raise InputError(
                    f"{self} needs a degree above limit={limit} for eps={eps:.3g} at t={t:.6g}: "
                    f"there the tail bound is {bounds[-1]:.3g}, and {allowed:.3g} is allowed. "
                    "Raise eps or limit, or scale the data further inside the radius of "
                    f"convergence, {self.radius:.6g}."
                )
            degree = min(4 * degree, limit)

    def convergence_rate(self, t: float = 1.0) -> float:
        r"""Estimate the p for which :math:`C_l t^l` falls like :math:`(l + 1)^{-p}`.

        [SWYZ21] calls such a kernel p-convergent.

        Parameters
        ----------
        t : float, default=1.0
            The largest ``|⟨x, y⟩|``, that is, the largest squared norm of the data.

        Returns
        -------
        float
            Infinite for a finite series and for one that falls faster than every power.
        """
        return self._rate(self._checked_argument(t))

    def contains(self, t: ArrayLike, tolerance: float = _TOLERANCE) -> bool:
        """Return whether the series converges at all t.

        Parameters
        ----------
        t : array-like
            Real numbers.
        tolerance : float
            The relative excess over the radius that is forgiven where the series converges at the
            radius itself. The default is a few roundings.

        Returns
        -------
        bool
            False if one of them is NaN.
        """
        return bool(self._inside(np.asarray(t, dtype=np.float64), tolerance).all())

    @abstractmethod
    def _coefficients(self, degree: int) -> Float64:
        """Return C_0, ..., C_degree, which the caller does not change."""

    def _terms(self, degree: int, t: float) -> Float64:
        """Return all C_l t^l, which the caller does not change, infinite beyond float64."""
        return product_of_powers(self._coefficients(degree), t)

    @abstractmethod
    def _value(self, t: Float64) -> Float64:
        """Return kappa(t) in the disk of convergence."""

    def _derivative(self, t: Float64) -> Float64:
        """Return kappa'(t) in the disk of convergence, zero where it is infinite at its end."""
        raise InputTypeError(
            f"{self} does not say what its derivative is; names, coefficients and callables do: "
            "use one of them, or for neural kernels ArcCosine and NeuralTangent themselves."
        )

    @abstractmethod
    def _tail_bounds(self, degree: int, t: float) -> Float64:
        """Return bounds of the tails after degree 0, ..., degree, none above the one before."""

    @abstractmethod
    def _rate(self, t: float) -> float:
        """Return the rate of convergence at t >= 0."""

    def _checked_argument(self, t: float) -> float:
        t = checked_positive("t", t) if t != 0 else 0.0
        self._check_inside(np.array(t))
        return min(t, self.radius)

    def _check_inside(self, t: Float64) -> None:
        inside = self._inside(t, _TOLERANCE)
        if not inside.all():
            relation = "at most" if self.closed else "less than"
            raise InputError(
                f"t={t[~inside].flat[0]:.6g} is outside the disk in which {self} converges; |t| "
                f"must be {relation} the radius {self.radius:.6g}: scale the data down."
            )

    def _inside(self, t: Float64, tolerance: float) -> NDArray[np.bool_]:
        if self.closed:
            return np.abs(t) <= self.radius * (1.0 + tolerance)
        return np.abs(t) < self.radius


class InfiniteSeries(PowerSeries):
    """A series of which bounds of the coefficients and of the values are known."""

    @abstractmethod
    def _lower_terms(self, degree: int, t: float) -> Float64:
        """Return C_l t^l with C_l rounded down and at most l + 1 roundings of the product."""

    @abstractmethod
    def _upper_value(self, t: float) -> float:
        """Return what the exact kappa(t) is at most, for t > 0."""

    def _analytic_bounds(self, degree: int, t: float) -> Float64:
        """Return bounds of the tails after degree 0, ..., degree that need no subtraction."""
        return np.full(degree + 1, np.inf)

    def _tail_bounds(self, degree: int, t: float) -> Float64:
        if t == 0.0:
            return np.zeros(degree + 1)
        bounds = np.minimum(self._remainders(degree, t), self._analytic_bounds(degree, t))
        outer = self._outer_argument()
        if t < outer < math.inf:
            bounds = np.minimum(bounds, self._bounds_from(outer, degree, t))
        # What bounds the tail after one degree bounds that after the next, which has fewer terms.
        return np.minimum.accumulate(bounds)

    def _remainders(self, degree: int, t: float) -> Float64:
        """Subtract the partial sums from the value, both rounded to the safe side."""
        counts = np.arange(degree + 1)
        terms = self._lower_terms(degree, t)
        # Below the normal numbers a rounding has no bounded relative error.
        terms[terms < TINY] = 0.0
        # Powers, products and sums: at most 2 l + 2 roundings on the way to the partial sum l.
        partial_sums = np.cumsum(terms) * (1.0 - (2 * counts + 4) * UNIT)
        return np.maximum(self._upper_value(t) - partial_sums, 0.0) * (1.0 + 4 * UNIT)

    def _outer_argument(self) -> float:
        """Return the largest argument of which the value is known, infinity if there is none."""
        return self.radius if self.closed else math.inf

    def _bounds_from(self, outer: float, degree: int, t: float) -> Float64:
        """Use that t^l is at most (t / outer)^(q + 1) outer^l for all l > q."""
        ratios = np.full(degree + 1, t / outer * (1.0 + 4 * UNIT))
        with np.errstate(under="ignore"):
            powers = np.maximum(np.cumprod(ratios), TINY)
            return np.maximum(powers * self._remainders(degree, outer), TINY)

    def _rate(self, t: float) -> float:
        early, middle, late = (self._slope(t, *ends) for ends in _RANGES)
        # The slope of a power settles; that of anything faster changes more and more.
        settles = late - middle <= max(_SMALL_CHANGE, middle - early)
        return late if settles else math.inf

    def _slope(self, t: float, start: int, stop: int) -> float:
        """Fit the slope of -log(C_l t^l) over log(l + 1) for start <= l < stop."""
        terms = self._terms(stop - 1, t)[start:]
        present = terms >= TINY
        if np.count_nonzero(present) < (stop - start) // 4:
            return math.inf
        abscissae = np.log(np.arange(start, stop)[present] + 1.0)
        abscissae -= abscissae.mean()
        ordinates = np.log(terms[present])
        return -float((abscissae * ordinates).sum() / (abscissae * abscissae).sum())


def product_of_powers(coefficients: Float64, t: float) -> Float64:
    """Return all C_l t^l, zero or infinite only where the product is beyond float64.

    The relative error is at most l + 1 roundings unless the product is below the normal numbers.
    """
    base, base_exponent = math.frexp(t)
    powers, power_exponents = np.empty(coefficients.size), np.empty(coefficients.size, np.int64)
    power, exponent = 1.0, 0
    for index in range(coefficients.size):
        powers[index], power_exponents[index] = power, exponent
        power, carry = math.frexp(power * base)
        exponent += base_exponent + carry
    mantissas, exponents = np.frexp(coefficients)
    total = np.clip(power_exponents + exponents, -_EXPONENT_LIMIT, _EXPONENT_LIMIT)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(mantissas * powers, total.astype(np.int32))


def wide_decimals() -> decimal.Context:
    """Return numbers of 50 digits and any size: rounding to float64 is the only error left."""
    return decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
