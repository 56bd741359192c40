"""Finite sums of powers that stand for an infinite series, and how far they are from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError
from powersketch.kernels.series import PowerSeries
from powersketch.random_streams import RandomStreams

_HIGHEST_DEGREE = 512
_FAILURE_PROBABILITY = 0.01


@dataclass(frozen=True, eq=False)
class FiniteSeries:
    """Σ_l terms[l] s^degrees[l], with s = t / radius, for κ(t) on |t| ≤ radius.

    Attributes
    ----------
    degrees : tuple of int
        Ascending.
    terms : array
        Coefficients at the radius, C_l · radius^l, all positive.
    radius : float
        The largest |t|.
    missing : float
        κ(radius) minus the sum of all terms: the weight that the diagonal lacks there.
    error_bound : float
        No |κ(t) − sum| with |t| ≤ radius is above it.
    """

    degrees: tuple[int, ...]
    terms: NDArray[np.float64]
    radius: float
    missing: float
    error_bound: float

    def value(self, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum at t = s · radius, by Horner's rule."""
        return horner(self.dense_terms(), s)

    def scaled(self, factor: float) -> FiniteSeries:
        """Return the same for a multiple of the kernel."""
        return FiniteSeries(
            self.degrees,
            factor * self.terms,
            self.radius,
            factor * self.missing,
            factor * self.error_bound,
        )

    def dense_terms(self, highest: int | None = None) -> NDArray[np.float64]:
        """Return the terms of all degrees from 0 to `highest`, zero where there is none."""
        last = max(self.degrees) if highest is None else highest
        dense = np.zeros(last + 1)
        for degree, term in zip(self.degrees, self.terms.tolist(), strict=True):
            if degree <= last:
                dense[degree] = term
        return dense


def horner(coefficients: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the polynomial with these coefficients, constant term first."""
    total = np.zeros_like(s)
    for coefficient in coefficients[::-1].tolist():
        total = total * s + coefficient
    return total


def truncated_series(series: PowerSeries, radius: float, eps: float) -> FiniteSeries:
    """Keep the degrees up to the first whose tail is at most `eps` of κ(radius), or up to 512."""
    highest, allowed = _HIGHEST_DEGREE, eps * float(series.value(radius))
    if series.tail_bound(highest, radius) <= allowed:
        highest = series.degree_for(eps, radius, limit=highest)
    terms = series.terms(highest, radius)
    return _finite(series, radius, terms, highest)


def sampled_series(
    series: PowerSeries, radius: float, rows: int, eps: float, streams: RandomStreams
) -> FiniteSeries:
    """Keep the first s degrees and a sample of those up to q, drawn in proportion to the terms.

    This is the scheme of Theorem B.5 (2 < p < 3) and Corollary B.6 (1 < p ≤ 2) of [SWYZ21] for
    p-convergent kernels: q = (n/ε)^(1/p), s = (n/ε)^(2/(1+2p)) or n^((2+2/p)/(3+2p)) ε^(−2/(3+2p)),
    and ε⁻² n² s^(−2p) log(n/δ) samples; a degree that is drawn k times counts k times. From p = 3
    on nothing is gained by it, and the series is cut off (Theorem B.2).
    """
    series.value(radius)  # refuses what is beyond float64 or outside the disk of convergence
    rate = series.convergence_rate(radius)
    if rate >= 3.0:
        return truncated_series(series, radius, eps)
    first, last, count = sampling_plan(rate, rows, eps)
    terms = series.terms(last, radius)
    tail = terms[first + 1 :]
    mass = math.fsum(tail)
    if mass > 0 and count:
        hits = _hits(tail / mass, count, streams)
        terms[first + 1 :] = hits * (mass / count)
    return _finite(series, radius, terms, last)


def sampling_plan(rate: float, rows: int, eps: float) -> tuple[int, int, int]:
    """Return s, q and the number of samples for a rate of convergence p below 3."""
    if rate <= 1.0:
        raise InputError(
            f"the terms of the series decay like l^-{rate:.2f}: the sampling scheme needs a rate "
            'above 1, as their sum diverges otherwise. Use tail="truncate" or scale the rows.'
        )
    ratio = rows / eps
    last = min(math.ceil(ratio ** (1.0 / rate)), _HIGHEST_DEGREE)
    if rate > 2.0:
        first = math.ceil(ratio ** (2.0 / (1.0 + 2.0 * rate)))
    else:
        exponent = (2.0 + 2.0 / rate) / (3.0 + 2.0 * rate)
        first = math.ceil(rows**exponent * eps ** (-2.0 / (3.0 + 2.0 * rate)))
    if first >= last:
        return last, last, 0
    samples = ratio**2 * first ** (-2.0 * rate) * math.log(max(rows, 2) / _FAILURE_PROBABILITY)
    return first, last, math.ceil(samples)


def _hits(
    probabilities: NDArray[np.float64], count: int, streams: RandomStreams
) -> NDArray[np.float64]:
    """Return how often each degree is drawn."""
    edges = np.add.accumulate(probabilities)
    uniform = streams.uniforms("degrees", count)
    drawn = np.minimum(np.searchsorted(edges, uniform, side="right"), len(edges) - 1)
    return np.bincount(drawn, minlength=len(edges)).astype(np.float64)


def _finite(
    series: PowerSeries, radius: float, terms: NDArray[np.float64], highest: int
) -> FiniteSeries:
    exact = series.terms(highest, radius)
    tail = series.tail_bound(highest, radius)
    missing = max(float(series.value(radius)) - math.fsum(terms), 0.0)
    # |Σ (C_l − Ĉ_l) t^l| is at most Σ |C_l − Ĉ_l| radius^l.
    bound = math.fsum(np.abs(exact - terms)) + tail
    # A series without any term is the constant zero.
    degrees = tuple(np.flatnonzero(terms > 0).tolist()) or (0,)
    return FiniteSeries(degrees, terms[list(degrees)], radius, missing, bound)
