"""What is common to power series that do not end: proven tails and the rate of decay."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from powersketch.kernels.series.power_series import TINY, UNIT, PowerSeries

_RANGES = ((128, 256), (256, 512), (512, 1024))
_SMALL_CHANGE = 0.05


class InfiniteSeries(PowerSeries):
    """A series of which bounds of the coefficients and of the values are known."""

    @abstractmethod
    def _lower_terms(self, degree: int, t: float) -> NDArray[np.float64]:
        """Return C_l t^l with C_l rounded down and at most l + 1 roundings of the product."""

    @abstractmethod
    def _upper_value(self, t: float) -> float:
        """Return what the exact kappa(t) is at most, for t > 0."""

    def _analytic_bounds(self, degree: int, t: float) -> NDArray[np.float64]:
        """Return bounds of the tails after degree 0, ..., degree that need no subtraction."""
        return np.full(degree + 1, np.inf)

    def _tail_bounds(self, degree: int, t: float) -> NDArray[np.float64]:
        if t == 0.0:
            return np.zeros(degree + 1)
        bounds = np.minimum(self._remainders(degree, t), self._analytic_bounds(degree, t))
        outer = self._outer_argument()
        if t < outer < math.inf:
            bounds = np.minimum(bounds, self._bounds_from(outer, degree, t))
        # What bounds the tail after one degree bounds that after the next, which has fewer terms.
        return np.minimum.accumulate(bounds)

    def _remainders(self, degree: int, t: float) -> NDArray[np.float64]:
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

    def _bounds_from(self, outer: float, degree: int, t: float) -> NDArray[np.float64]:
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
