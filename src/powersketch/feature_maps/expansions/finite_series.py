"""Finite sums of powers that stand for an infinite series, and how far they are from it.

Taylor series are cut off, or their tails sampled. A kernel with a singularity at the radius has a
slowly decaying series; what its tail adds there one or two high degrees can add as well, and high
degrees are cheap here: the third way is a fit by least squares on [−radius, radius], with
coefficients that are not negative, exact at the radius. Below, s is t / radius.

All sums of the fit are correctly rounded (`math.fsum`) and all else is elementary arithmetic, so
that the coefficients, and with them the features, have the same bits on every machine.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np

from powersketch.arrays import Float64, Vector
from powersketch.exceptions import InputError
from powersketch.kernels.series import PowerSeries
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

TAILS = ("fit", "truncate", "sample")
_HIGHEST_DEGREE = 512
_FAILURE_PROBABILITY = 0.01
_ALL_DEGREES_UP_TO = 16
# Pairs of an odd and an even degree: a kernel may lack one of the two kinds altogether.
_HIGH_DEGREES = (24, 32, 48, 64, 96, 128, 192, 256)
_SERIES_DEGREE = 2048  # of the target: beyond it, nothing is left at |s| ≤ _LARGEST
_LARGEST = 0.995
_GRID = 256
_WEIGHT_AT_ONE = 1e3
_NEGLIGIBLE = 1e-6  # of the value at 1
_CONVERGED = 1e-11


@storable
@dataclass(frozen=True, eq=False, repr=False)
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
    terms: Vector
    radius: float
    missing: float
    error_bound: float

    def value(self, s: Vector) -> Vector:
        """Return the sum at t = s · radius, by Horner's rule."""
        return horner(self._all_terms, s)

    @functools.cached_property
    def total(self) -> float:
        """The sum of all terms, the value at the radius."""
        return math.fsum(self.terms)

    @functools.cached_property
    def _all_terms(self) -> Vector:
        return self.dense_terms()

    def scaled(self, factor: float) -> FiniteSeries:
        """Return the same for a multiple of the kernel."""
        return FiniteSeries(
            self.degrees,
            factor * self.terms,
            self.radius,
            factor * self.missing,
            factor * self.error_bound,
        )

    def dense_terms(self, highest: int | None = None) -> Vector:
        """Return the terms of all degrees from 0 to `highest`, zero where there is none."""
        last = max(self.degrees) if highest is None else highest
        dense = np.zeros(last + 1)
        for degree, term in zip(self.degrees, self.terms.tolist(), strict=True):
            if degree <= last:
                dense[degree] = term
        return dense


def horner(coefficients: Float64, s: Vector) -> Float64:
    """Return the polynomial with these coefficients, constant term first.

    Coefficients may be columns: then every row of the result is another polynomial.
    """
    total = np.zeros_like(s)
    for coefficient in coefficients[::-1]:
        total = total * s + coefficient
    return total


def finite_series_of(
    series: PowerSeries,
    radius: float,
    tail: str,
    eps: float,
    rows: int,
    streams: RandomStreams,
    *,
    high_degrees: bool = True,
) -> FiniteSeries:
    """Return the finite series for |t| ≤ radius; `high_degrees` allows a fit to use them."""
    if tail == "fit":
        return fitted_series(series, radius, high_degrees)
    if tail == "sample":
        return sampled_series(series, radius, rows, eps, streams)
    return truncated_series(series, radius, eps)


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


def _hits(probabilities: Vector, count: int, streams: RandomStreams) -> Vector:
    """Return how often each degree is drawn."""
    edges = np.add.accumulate(probabilities)
    uniform = streams.uniforms("degrees", count)
    drawn = np.minimum(np.searchsorted(edges, uniform, side="right"), len(edges) - 1)
    return np.bincount(drawn, minlength=len(edges)).astype(np.float64)


def _finite(series: PowerSeries, radius: float, terms: Vector, highest: int) -> FiniteSeries:
    exact = series.terms(highest, radius)
    tail = series.tail_bound(highest, radius)
    missing = max(float(series.value(radius)) - math.fsum(terms), 0.0)
    # |Σ (C_l − Ĉ_l) t^l| is at most Σ |C_l − Ĉ_l| radius^l.
    bound = math.fsum(np.abs(exact - terms)) + tail
    # A series without any term is the constant zero.
    degrees = tuple(np.flatnonzero(terms > 0).tolist()) or (0,)
    return FiniteSeries(degrees, terms[list(degrees)], radius, missing, bound)


@functools.lru_cache(maxsize=32)
def fitted_series(series: PowerSeries, radius: float, high_degrees: bool = True) -> FiniteSeries:
    """Fit κ on [−radius, radius] by few degrees, κ(radius) exactly.

    Without norm preservation the error of a sketch grows with its degree: no high ones then.
    """
    target = series.terms(_SERIES_DEGREE, radius)
    total = float(series.value(radius))
    degrees = _candidate_degrees(target, _HIGH_DEGREES if high_degrees else ())
    s = _grid()
    # A heavy last point makes the fit all but exact at 1; the scaling below does the rest.
    columns = [np.append(_power(s, degree), _WEIGHT_AT_ONE) for degree in degrees]
    values = np.append(horner(target, s), _WEIGHT_AT_ONE * total)
    terms = nonnegative_least_squares(columns, values)
    kept = terms > _NEGLIGIBLE * total
    terms = terms[kept] * (total / math.fsum(terms[kept]))
    chosen = tuple(degree for degree, keep in zip(degrees, kept, strict=True) if keep)
    fit = FiniteSeries(chosen, terms, radius, 0.0, math.inf)
    return dataclasses.replace(fit, error_bound=largest_difference(series, fit))


def largest_difference(series: PowerSeries, fit: FiniteSeries) -> float:
    """Bound |κ(t) − fit(t)| on [−radius, radius] by values on a grid.

    The even and the odd part of either grow on [0, radius], so that between two points of the grid
    each of them lies between its values there.
    """
    angles = np.linspace(np.pi / 2, 0.0, 8193)
    s = np.clip(np.cos(angles), 0.0, 1.0)
    s[0], s[-1] = 0.0, 1.0
    exact = [series.value(fit.radius * s), series.value(-fit.radius * s)]
    other = [fit.value(s), fit.value(-s)]
    bound = 0.0
    for sign in (1.0, -1.0):
        low, high = _range(exact, sign)
        fit_low, fit_high = _range(other, sign)
        bound = max(bound, float(np.max(high - fit_low)), float(np.max(fit_high - low)))
    return bound


def _range(values: list[Vector], sign: float) -> tuple[Vector, Vector]:
    """Return lower and upper bounds of even ± odd part between neighbours of the grid."""
    even, odd = (values[0] + values[1]) / 2, (values[0] - values[1]) / 2
    if sign > 0:
        return even[:-1] + odd[:-1], even[1:] + odd[1:]
    return even[:-1] - odd[1:], even[1:] - odd[:-1]


def _candidate_degrees(target: Vector, high_degrees: tuple[int, ...]) -> list[int]:
    """Return low degrees, then pairs of high ones; only those of a kind that the kernel has."""
    pairs = [degree for high in high_degrees for degree in (high - 1, high)]
    candidates = [*range(_ALL_DEGREES_UP_TO + 1), *pairs]
    present = {parity for parity in (0, 1) if np.any(target[2 + parity :: 2] > 0)}
    return [degree for degree in candidates if degree < 2 or degree % 2 in present]


def _grid() -> Vector:
    """Return points that are dense near ±1, where the kernel is steep."""
    even = (2.0 * np.arange(_GRID) + 1.0) / _GRID - 1.0
    # s (3 − s²) / 2 has slope 0 at ±1, as a cosine has.
    bent = 0.5 * even * (3.0 - even * even)
    return np.sort(np.concatenate([even, bent])) * _LARGEST


def _power(s: Vector, degree: int) -> Vector:
    result, base = np.ones_like(s), s
    while degree:
        if degree & 1:
            result = result * base
        base, degree = base * base, degree >> 1
    return result


def _dot(left: Vector, right: Vector) -> float:
    return math.fsum((left * right).tolist())


def nonnegative_least_squares(columns: list[Vector], target: Vector) -> Vector:
    """Minimise ‖Σ c_k columns[k] − target‖ over c ≥ 0 by the active set of Lawson and Hanson."""
    solution = np.zeros(len(columns))
    active: list[int] = []
    smallest = _CONVERGED * math.sqrt(_dot(target, target))
    for _ in range(4 * len(columns)):
        residual = target - _combination(columns, solution)
        gains = [_gain(column, residual) for column in columns]
        for k in active:
            gains[k] = 0.0
        best = int(np.argmax(gains))
        if gains[best] <= smallest:
            break
        active.append(best)
        if not _solve_active(columns, target, solution, active):
            break
    return solution


def _gain(column: Vector, residual: Vector) -> float:
    return _dot(column, residual) / math.sqrt(_dot(column, column))


def _solve_active(
    columns: list[Vector], target: Vector, solution: Vector, active: list[int]
) -> bool:
    """Move to the least-squares solution of the active columns, dropping those that reach 0.

    False if the newest column is dropped at once: rounding errors hide any further progress.
    """
    newest = active[-1]
    while active:
        wanted = least_squares([columns[k] for k in active], target)
        current = solution[active]
        blocking = [
            (now / (now - goal), k)
            for now, goal, k in zip(current.tolist(), wanted.tolist(), active, strict=True)
            if goal <= 0.0
        ]
        step, leaving = min(blocking, default=(1.0, -1))
        solution[active] = current + step * (wanted - current)
        if leaving < 0:
            return True
        solution[leaving] = 0.0
        active.remove(leaving)
        if leaving == newest:
            return False
    return True


def _combination(columns: list[Vector], coefficients: Vector) -> Vector:
    total = np.zeros_like(columns[0])
    for column, coefficient in zip(columns, coefficients.tolist(), strict=True):
        if coefficient:
            total = total + coefficient * column
    return total


def least_squares(columns: list[Vector], target: Vector) -> Vector:
    """Solve by modified Gram–Schmidt, which small ill-conditioned systems survive."""
    orthogonal: list[Vector] = []
    upper = np.zeros((len(columns), len(columns)))
    projected = np.zeros(len(columns))
    rest = target
    for k, column in enumerate(columns):
        for j, basis in enumerate(orthogonal):
            upper[j, k] = _dot(basis, column)
            column = column - upper[j, k] * basis
        upper[k, k] = math.sqrt(_dot(column, column))
        orthogonal.append(column / upper[k, k] if upper[k, k] > 0 else column)
        projected[k] = _dot(orthogonal[k], rest)
        rest = rest - projected[k] * orthogonal[k]
    solution = np.zeros(len(columns))
    for k in range(len(columns) - 1, -1, -1):
        known = math.fsum((upper[k, k + 1 :] * solution[k + 1 :]).tolist())
        solution[k] = (projected[k] - known) / upper[k, k] if upper[k, k] > 0 else 0.0
    return solution
