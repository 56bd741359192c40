"""Sums or iterations? What either takes in seconds and bytes, predicted before it starts.

The rates are those of two cores that fit the times of `benchmarks/large/choices.py` best, and they
are fixed: the same call makes the same choice on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from powersketch.exceptions import InputError
from powersketch.execution import available_memory
from powersketch.kernel_ridge.choosing.budgets import bytes_of_fit
from powersketch.kernel_ridge.solving.preconditioners import MOST_FACTORED, SampleInverses

SOLVERS = ("auto", "gram", "cg")

RATES = {
    "sums in float32": 2.8e11,
    "sums in float64": 1.8e11,
    "sketched numbers": 1.5e8,
    "kernel values in float32": 3e8,
    "kernel values in float64": 6.9e7,
    "inner products in float32": 1.1e11,
    "inner products in float64": 5.6e10,
    "thin products": 1.2e11,
    "bytes read": 9.8e9,
    "factorisations": 8.2e10,
    "leaving out": 3.3e10,
}
"""What is done in a second: products, but for numbers of features or values and bytes of them."""

# Alphas that sums try where alpha is searched, each with a factorisation of a third of m³.
_TRIES_OF_SEARCH = 5
# Steps to the tolerance; and until errors of rows held out level off, for a few alphas at a time.
_STEPS_OF_LANDMARKS, _STEPS_OF_SKETCHES, _STEPS_TO_PLATEAU = 22, 9, 7
_PASSES_FOR_MEANS = 2
_ROUNDS_OF_SEARCH, _TOGETHER = 2, 3
_LEFT_OUT_ROWS = 2048
# Sums are preferred where iterations gain little, as more follows from sums.
_WORTH_IT = 0.95
_FEWEST_FEATURES = 1024
_BLOCKS = 384 << 20
# Of what is available: the rest is for rows, for what others do, and for what was not predicted.
_SHARE_OF_AVAILABLE, _SHARE_TO_STORE = 0.9, 0.6


Work: TypeAlias = dict[str, float]
"""How much of what has a rate."""


def seconds(work: Work) -> float:
    """Return how long some work is predicted to take."""
    return sum(amount / RATES[name] for name, amount in work.items())


def _sum(*parts: Work) -> Work:
    return {name: sum(part.get(name, 0.0) for part in parts) for part in parts for name in part}


@dataclass(frozen=True)
class Problem:
    """What the costs of a fit depend on; `alphas` is 1 if alpha is given, 0 if it is searched.

    `kept_bytes` are those of rows that iterations keep for sums that may be asked for later.
    """

    rows: int
    columns: int
    features: int
    targets: int
    alphas: int
    landmarks: bool
    dtype: Any
    holds_out: bool = True
    kept_bytes: float = 0.0

    def work_of_sums(self) -> Work:
        """Return the work of a Gram matrix and its solution."""
        n, m = float(self.rows), float(self.features)
        single = self.dtype == np.float32 and not self.landmarks
        tries = self.alphas or _TRIES_OF_SEARCH
        factors = tries * m**3 / 3.0 + (2.0 * m**3 if self.landmarks else 0.0)
        left_out = tries * _LEFT_OUT_ROWS * m**2 if self.holds_out else 0.0
        # Features are computed while sums run, but take their share of the cores.
        work = self._work_of_features(1.0, in_float32=False)
        return _sum(
            work,
            {"sums in float32" if single else "sums in float64": n * m**2},
            {"factorisations": factors},
            {"leaving out": left_out},
        )

    def work_of_iterations(self, *, stored: bool) -> Work:
        """Return the work of conjugate gradients."""
        n, m = float(self.rows), float(self.features)
        searched = self.alphas != 1
        rounds = -(-self.alphas // _TOGETHER) if self.alphas else _ROUNDS_OF_SEARCH
        of_search = rounds * _STEPS_TO_PLATEAU if searched else 0
        columns = float(of_search * min(self.alphas or _TOGETHER, _TOGETHER))
        if self.holds_out:
            # Beside the system without some rows, that of all.
            last, columns = _STEPS_TO_PLATEAU, columns + 2.0 * _STEPS_TO_PLATEAU
        else:
            last = _STEPS_OF_LANDMARKS if self.landmarks else _STEPS_OF_SKETCHES
            columns += last
        passes = float(of_search + last + _PASSES_FOR_MEANS)
        thin = 4.0 * n * m * self.targets * (columns + _PASSES_FOR_MEANS)
        again = {"bytes read": passes * 4.0 * n * m} if stored else {}
        features = self._work_of_features(1.0 if stored else passes, in_float32=True)
        return _sum({"thin products": thin}, again, features, self._work_of_inverses(rounds))

    def _work_of_features(self, passes: float, *, in_float32: bool) -> Work:
        numbers = passes * float(self.rows) * float(self.features)
        if not self.landmarks:
            return {"sketched numbers": numbers}
        precision = "float32" if in_float32 else "float64"
        products = 2.0 * numbers * self.columns
        return {
            f"kernel values in {precision}": numbers,
            f"inner products in {precision}": products,
        }

    def _work_of_inverses(self, rounds: int) -> Work:
        m = float(self.features)
        if self.landmarks:
            return {"factorisations": (1.0 + 1.0 * rounds) * m**3 / 3.0}
        sample = float(min(SampleInverses.rows_for(self.features), self.rows))
        if m <= MOST_FACTORED:
            return {"sums in float32": sample * m**2, "factorisations": rounds * m**3 / 6.0}
        return {"sums in float32": sample**2 * m, "factorisations": sample**3 / 3.0}

    def bytes_of_sums(self) -> float:
        """Return the most that sums hold at a time beside the rows."""
        return bytes_of_fit(self.rows, self.features, self.columns)

    def bytes_of_iterations(self, *, stored: bool) -> float:
        """Return the most that iterations hold at a time beside the rows."""
        n, m = float(self.rows), float(self.features)
        total = min(_BLOCKS, 32.0 * n * m) + 64.0 * m * self.targets + self.kept_bytes
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
    """The solver of a fit, whether iterations store features, and what it is predicted to take.

    `reason` says why this solver was taken, where there was a choice.
    """

    solver: str
    stored: bool
    seconds: float = 0.0
    bytes: float = 0.0
    reason: str = ""

    def describe(self, features: int, rows: int) -> str:
        """Return what the fit is predicted to take, in words."""
        predicted = f", predicted to take {self.seconds:.2g} s" if self.seconds else ""
        return f"{features} features of {rows} rows by solver={self.solver!r}{predicted}"


def planned(problem: Problem, solver: str, memory_budget: float | None) -> Plan:
    """Return the plan for a problem; refuse what does not fit, and say which size would."""
    plans = _plans(problem, solver, memory_budget)
    if not plans:
        raise InputError(_refusal(problem, solver, memory_budget))
    if solver != "auto":
        return plans[0]
    if len(plans) == 1:
        return replace(plans[0], reason="all that fits the memory")
    gram, cg = plans
    few = problem.features < _FEWEST_FEATURES
    taken, other = (gram, cg) if few or cg.seconds > _WORTH_IT * gram.seconds else (cg, gram)
    times = f"{taken.seconds:.2g} s and not the {other.seconds:.2g} s of {other.solver!r}"
    return replace(taken, reason=f"predicted to take {times}")


def _plans(problem: Problem, solver: str, memory_budget: float | None) -> list[Plan]:
    """Return how it can be done within the memory: by sums, by iterations."""
    limit, to_store = _limits(memory_budget)
    plans = []
    if solver != "cg" and problem.bytes_of_sums() <= limit:
        predicted = seconds(problem.work_of_sums())
        plans.append(Plan("gram", False, predicted, problem.bytes_of_sums()))
    if solver == "gram":
        return plans
    for stored, most in ((True, to_store), (False, limit)):
        if problem.bytes_of_iterations(stored=stored) <= most:
            # What this machine happens to have free must not decide on the solver.
            work = problem.work_of_iterations(stored=stored or memory_budget is None)
            bytes = problem.bytes_of_iterations(stored=stored)
            plans.append(Plan("cg", stored, seconds(work), bytes))
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
