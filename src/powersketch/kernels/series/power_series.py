"""Power series with non-negative coefficients, and what is left when one is cut off."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powersketch.exceptions import InputError
from powersketch.parameters import (
    checked_integer,
    checked_positive,
)

__all__ = ["PowerSeries"]

UNIT = 2.0**-53  # the largest relative error of one rounding
TINY = float(np.finfo(np.float64).tiny)

# Inner products of rows of length one exceed 1 by a few roundings.
_TOLERANCE = 64 * float(np.finfo(np.float64).eps)
_FIRST_GUESS = 64
_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite


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

    def coefficients(self, degree: int) -> NDArray[np.float64]:
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

    def terms(self, degree: int, t: float) -> NDArray[np.float64]:
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

    def value(self, t: ArrayLike) -> NDArray[np.float64]:
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
        t = np.asarray(t, dtype=np.float64)
        self._check_inside(t)
        with np.errstate(over="ignore", under="ignore"):
            values = self._value(np.clip(t, -self.radius, self.radius))
        if not np.isfinite(values).all():
            worst = t[~np.isfinite(values)].flat[0]
            raise InputError(
                f"{self} is above the largest float64 at t={worst:.6g}: scale the data down."
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
    def _coefficients(self, degree: int) -> NDArray[np.float64]:
        """Return C_0, ..., C_degree, which the caller does not change."""

    def _terms(self, degree: int, t: float) -> NDArray[np.float64]:
        """Return all C_l t^l, which the caller does not change, infinite beyond float64."""
        return product_of_powers(self._coefficients(degree), t)

    @abstractmethod
    def _value(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return kappa(t) in the disk of convergence."""

    @abstractmethod
    def _tail_bounds(self, degree: int, t: float) -> NDArray[np.float64]:
        """Return bounds of the tails after degree 0, ..., degree, none above the one before."""

    @abstractmethod
    def _rate(self, t: float) -> float:
        """Return the rate of convergence at t >= 0."""

    def _checked_argument(self, t: float) -> float:
        t = checked_positive("t", t) if t != 0 else 0.0
        self._check_inside(np.array(t))
        return min(t, self.radius)

    def _check_inside(self, t: NDArray[np.float64]) -> None:
        inside = self._inside(t, _TOLERANCE)
        if not inside.all():
            relation = "at most" if self.closed else "less than"
            raise InputError(
                f"t={t[~inside].flat[0]:.6g} is outside the disk in which {self} converges; |t| "
                f"must be {relation} the radius {self.radius:.6g}: scale the data down."
            )

    def _inside(self, t: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
        if self.closed:
            return np.abs(t) <= self.radius * (1.0 + tolerance)
        return np.abs(t) < self.radius


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

    def _coefficients(self, degree: int) -> NDArray[np.float64]:
        return product_of_powers(self._series._coefficients(degree), self._gamma)

    def _terms(self, degree: int, t: float) -> NDArray[np.float64]:
        return self._series._terms(degree, self._inner(t))

    def _value(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        radius = self._series.radius
        return self._series._value(np.clip(self._gamma * t, -radius, radius))

    def _tail_bounds(self, degree: int, t: float) -> NDArray[np.float64]:
        return self._series._tail_bounds(degree, self._inner(t))

    def _rate(self, t: float) -> float:
        return self._series._rate(self._inner(t))

    def _inner(self, t: float) -> float:
        return min(self._gamma * t, self._series.radius)


def product_of_powers(coefficients: NDArray[np.float64], t: float) -> NDArray[np.float64]:
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
