"""Sums or iterations? What either takes in seconds and bytes, predicted before it starts.

The rates are those of two cores, measured by `benchmarks/large`, and fixed: the same call gives the
same model on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.exceptions import InputError
from powersketch.execution import available_memory
from powersketch.kernel_ridge.choosing.budgets import bytes_of_fit
from powersketch.kernel_ridge.solving.preconditioners import MOST_FACTORED, SampleInverses

SOLVERS = ("auto", "gram", "cg")

# Per second: products of sums in float32 and float64, numbers of features from a sketch and of
# products for kernel values, products of thin matrices, products of factorisations in float64.
_SUMS_FLOAT32, _SUMS_FLOAT64 = 2.1e11, 1.0e11
_SKETCHED, _KERNEL_PRODUCTS = 6e8, 1.6e11
_THIN_PRODUCTS, _READ = 5.5e10, 1.2e10
_FACTOR_PRODUCTS = 8e10
# Factorisations, each a third of m³: of sums of one alpha, of each more, and of iterations.
_TRIES_OF_SEARCH = 5
# Steps to the tolerance; until errors of rows held out level off, for a few alphas at a time; and
# of all rows afterwards.
_STEPS_TO_TOLERANCE, _STEPS_TO_PLATEAU, _LAST_STEPS = 24, 9, 5
_ROUNDS_OF_SEARCH, _TOGETHER = 2, 3
_LEFT_OUT_ROWS = 2048
# Sums are preferred where iterations gain little, as more follows from sums.
_WORTH_IT = 0.9
_FEWEST_FEATURES = 1024
_BLOCKS = 384 << 20
# Of what is available: the rest is for rows, for what others do, and for what was not predicted.
_SHARE_OF_AVAILABLE, _SHARE_TO_STORE = 0.9, 0.6


@dataclass(frozen=True)
class Problem:
    """What the costs of a fit depend on; `alphas` is 1 if alpha is given, 0 if it is searched."""

    rows: int
    columns: int
    features: int
    targets: int
    alphas: int
    landmarks: bool
    dtype: Any
    holds_out: bool = True

    def seconds_of_sums(self) -> float:
        """Return the predicted time of a Gram matrix and its solution."""
        n, m = float(self.rows), float(self.features)
        single = self.dtype == np.float32 and not self.landmarks
        sums = n * m**2 / (_SUMS_FLOAT32 if single else _SUMS_FLOAT64)
        tries = self.alphas or _TRIES_OF_SEARCH
        factors = tries * m**3 / 3.0 + (2.0 * m**3 if self.landmarks else 0.0)
        if self.holds_out:
            factors += (tries + 1) * _LEFT_OUT_ROWS * m**2
        # Features are computed while sums run, but take their share of the cores.
        return self._seconds_of_features(in_float32=False) + sums + factors / _FACTOR_PRODUCTS

    def seconds_of_iterations(self, *, stored: bool) -> float:
        """Return the predicted time of conjugate gradients."""
        n, m = float(self.rows), float(self.features)
        rounds, together, steps = 1, 1, _STEPS_TO_TOLERANCE
        if self.holds_out or self.alphas != 1:
            rounds = -(-self.alphas // _TOGETHER) if self.alphas else _ROUNDS_OF_SEARCH
            together = min(self.alphas or _TOGETHER, _TOGETHER)
            steps = rounds * _STEPS_TO_PLATEAU
        products = 4.0 * n * m * self.targets / _THIN_PRODUCTS
        read = 4.0 * n * m / _READ if stored else self._seconds_of_features(in_float32=True)
        passes = steps * (products * together + read) + (2 + _LAST_STEPS) * (products + read)
        once = self._seconds_of_features(in_float32=True) if stored else 0.0
        return once + passes + self._seconds_of_preconditioner(rounds)

    def _seconds_of_features(self, *, in_float32: bool) -> float:
        n, m = float(self.rows), float(self.features)
        if not self.landmarks:
            return n * m / _SKETCHED
        rate = _KERNEL_PRODUCTS if in_float32 else 0.6 * _KERNEL_PRODUCTS
        return n * m * (2.0 * self.columns + 60.0) / rate

    def _seconds_of_preconditioner(self, rounds: int) -> float:
        m = float(self.features)
        if self.landmarks:
            return (1.0 + 1.0 * rounds) * m**3 / 3.0 / _FACTOR_PRODUCTS
        sample = min(SampleInverses.rows_for(self.features), self.rows)
        if m <= MOST_FACTORED:
            return sample * m**2 / _SUMS_FLOAT32 + rounds * m**3 / 6.0 / _FACTOR_PRODUCTS
        return sample**2 * m / _SUMS_FLOAT32 + sample**3 / 3.0 / _FACTOR_PRODUCTS

    def bytes_of_sums(self) -> float:
        """Return the most that sums hold at a time beside the rows."""
        return bytes_of_fit(self.rows, self.features, self.columns)

    def bytes_of_iterations(self, *, stored: bool) -> float:
        """Return the most that iterations hold at a time beside the rows."""
        n, m = float(self.rows), float(self.features)
        total = min(_BLOCKS, 32.0 * n * m) + 64.0 * m * self.targets
        if stored:
            # Values at landmarks of float64 rows need all their digits.
            total += (8.0 if self.landmarks and self.dtype == np.float64 else 4.0) * n * m
        if self.landmarks:
            return total + 12.0 * m**2
        sample = min(SampleInverses.rows_for(self.features), self.rows)
        if m <= MOST_FACTORED:
            return total + 16.0 * m**2
        return total + 4.0 * sample * m + 24.0 * sample**2


@dataclass(frozen=True)
class Plan:
    """The solver of a fit, whether iterations store features, and what it is predicted to take."""

    solver: str
    stored: bool
    seconds: float = 0.0
    bytes: float = 0.0


def planned(problem: Problem, solver: str, memory_budget: float | None) -> Plan:
    """Return the plan for a problem; refuse what does not fit, and say which size would."""
    plans = _plans(problem, solver, memory_budget)
    if not plans:
        raise InputError(_refusal(problem, solver, memory_budget))
    if solver != "auto" or len(plans) == 1:
        return plans[0]
    gram, cg = plans
    few = problem.features < _FEWEST_FEATURES
    return gram if few or cg.seconds > _WORTH_IT * gram.seconds else cg


def _plans(problem: Problem, solver: str, memory_budget: float | None) -> list[Plan]:
    """Return how it can be done within the memory: by sums, by iterations."""
    limit, to_store = _limits(memory_budget)
    plans = []
    if solver != "cg" and problem.bytes_of_sums() <= limit:
        plans.append(Plan("gram", False, problem.seconds_of_sums(), problem.bytes_of_sums()))
    if solver == "gram":
        return plans
    for stored, most in ((True, to_store), (False, limit)):
        if problem.bytes_of_iterations(stored=stored) <= most:
            # What this machine happens to have free must not decide on the solver.
            predicted = stored or memory_budget is None
            seconds = problem.seconds_of_iterations(stored=predicted)
            bytes = problem.bytes_of_iterations(stored=stored)
            plans.append(Plan("cg", stored, seconds, bytes))
            break
    return plans


def _limits(memory_budget: float | None) -> tuple[float, float]:
    """Return how many bytes a fit may take, and may take to store features."""
    if memory_budget is not None:
        return memory_budget, memory_budget
    available = float(available_memory())
    return _SHARE_OF_AVAILABLE * available, _SHARE_TO_STORE * available


def _refusal(problem: Problem, solver: str, memory_budget: float | None) -> str:
    """Say what is missing, and the largest number of features that fits."""
    limit, _ = _limits(memory_budget)
    least = problem.bytes_of_sums()
    if solver != "gram":
        least = min(least, problem.bytes_of_iterations(stored=False))
    low, high = 0, problem.features
    while high - low > 1:
        middle = (low + high) // 2
        smaller = Problem(**{**vars(problem), "features": middle})
        low, high = (middle, high) if _plans(smaller, solver, memory_budget) else (low, middle)
    have = "are available" if memory_budget is None else f"are memory_budget={memory_budget:g}"
    remedy = f"use n_components={_rounded_down(low)} or fewer" if low else "give more memory"
    other = ", or solver='cg'" if solver == "gram" else ""
    return (
        f"{problem.features} features of {problem.rows} rows take at least "
        f"{least / 2**30:.2g} GiB beside the rows, and {limit / 2**30:.2g} GiB {have}: "
        f"{remedy}{other}."
    )


def _rounded_down(size: int) -> int:
    """Return the number with two digits at most that are not zero."""
    unit: int = 10 ** max(int(math.log10(size)) - 1, 0)
    return size // unit * unit
