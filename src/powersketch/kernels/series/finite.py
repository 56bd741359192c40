"""Power series with finitely many terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.series.power_series import TINY, UNIT, PowerSeries, product_of_powers
from powersketch.validation import sound_array

__all__ = ["CoefficientSeries"]


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

    def coefficients(self, degree: int | None = None) -> NDArray[np.float64]:
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

    def _coefficients(self, degree: int) -> NDArray[np.float64]:
        padded = np.zeros(degree + 1)
        kept = self.all_coefficients[: degree + 1]
        padded[: kept.size] = kept
        return padded

    def _value(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.full(t.shape, self.all_coefficients[-1])
        for coefficient in self.all_coefficients[-2::-1]:
            values *= t
            values += coefficient
        return values

    def _tail_bounds(self, degree: int, t: float) -> NDArray[np.float64]:
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


def _checked_coefficients(coefficients: Any) -> NDArray[np.float64]:
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
