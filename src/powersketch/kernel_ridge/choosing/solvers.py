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
from powersketch.kernel_ridge.solving.iterative import (
    PATIENCE_TO_PLATEAU,
    PATIENCE_TO_TOLERANCE,
)
from powersketch.kernel_ridge.solving.preconditioners import (
    MOST_FACTORED,
    rows_of_sample,
    steps_with_landmarks,
)
from powersketch.kernel_ridge.solving.row_products import bytes_of_block

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
    "leaving out": 2.7e10,
}
"""What is done in a second: products, but for numbers of features or values and bytes of them."""

# Alphas that sums try where alpha is searched, each with a factorisation of a third of m³.
_TRIES_OF_SEARCH = 5
# Steps to the tolerance; and until errors of rows held out level off, for a few alphas at a time.
_STEPS_OF_LANDMARKS, _STEPS_OF_SAMPLES, _STEPS_TO_PLATEAU = 22, 9, 7
_PASSES_FOR_MEANS = 2
_ROUNDS_OF_SEARCH, _TOGETHER = 2, 3
_LEFT_OUT_ROWS = 2048
# Sums are preferred where iterations gain little, as more follows from sums.
_WORTH_IT = 0.95
_FEWEST_FEATURES = 512
# Blocks of features that there are at a time: tasks that wait, and what blocks are made from.
_BLOCKS = 12
# Of what is available: the rest is for rows, for what others do, and for what was not predicted.
_SHARE_OF_AVAILABLE, _SHARE_TO_STORE = 0.9, 0.75
# What an ordinary machine has available, by which solvers are compared on every machine.
_USUAL_MEMORY = 16e9


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

    `kept_bytes` are those of rows that iterations keep for sums that may be asked for later;
    `precise` says that they need values at landmarks in float64.
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
    precise: bool = False

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

    def work_of_iterations(self, *, stored: float = 1.0) -> Work:
        """Return the work of conjugate gradients, with features stored of a share of the rows."""
        n, m = float(self.rows), float(self.features)
        searched = self.alphas != 1
        rounds = -(-self.alphas // _TOGETHER) if self.alphas else _ROUNDS_OF_SEARCH
        of_search = rounds * _STEPS_TO_PLATEAU if searched else 0
        columns = float(of_search * min(self.alphas or _TOGETHER, _TOGETHER))
        if self.holds_out:
            # Beside the system without some rows, that of all.
            last, columns = _STEPS_TO_PLATEAU, columns + 2.0 * _STEPS_TO_PLATEAU
        else:
            last = _STEPS_OF_LANDMARKS if self._tries_landmarks else _STEPS_OF_SAMPLES
            columns += last
        passes = float(of_search + last + _PASSES_FOR_MEANS)
        thin = 4.0 * n * m * self.targets * (columns + _PASSES_FOR_MEANS)
        again = {"bytes read": passes * 4.0 * n * m * stored}
        times = stored + (1.0 - stored) * passes
        features = self._work_of_features(times, in_float32=True)
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
        m, sample = float(self.features), self._rows_of_sample
        if self._tries_landmarks:
            return {"factorisations": (1.0 + rounds) * m**3 / 3.0}
        if m <= MOST_FACTORED:
            # Features of a row at landmarks take as many products as their part of the sums.
            products = (2.0 if self.landmarks else 1.0) * sample * m**2
            return {"sums in float32": products, "factorisations": rounds * m**3 / 6.0}
        return {"sums in float32": sample**2 * m, "factorisations": sample**3 / 3.0}

    @property
    def _rows_of_sample(self) -> float:
        return float(rows_of_sample(self.rows, self.features, self._columns_of_step))

    @property
    def _tries_landmarks(self) -> bool:
        """Whether iterations begin with landmarks as a sample, which then is likely to do."""
        patience = PATIENCE_TO_PLATEAU if self.holds_out else PATIENCE_TO_TOLERANCE
        given = self.rows, self.features, self._columns_of_step
        return self.landmarks and bool(steps_with_landmarks(*given, patience))

    @property
    def _columns_of_step(self) -> int:
        """Columns of a product for one alpha: those without the rows held out, and of all."""
        return (2 if self.holds_out else 1) * self.targets

    def bytes_of_sums(self) -> float:
        """Return the most that sums hold at a time beside the rows."""
        return bytes_of_fit(self.rows, self.features, self.columns)

    def bytes_of_iterations(self) -> float:
        """Return the most that iterations hold at a time beside the rows, with nothing stored."""
        n, m, t = float(self.rows), float(self.features), float(self.targets)
        total = min(_BLOCKS * bytes_of_block(self.features), 32.0 * n * m) + self.kept_bytes
        # Vectors of the iterations, for a few alphas; and targets, weighted for every side.
        total += 100.0 * m * t * (_TOGETHER if self.alphas != 1 else 1) + 40.0 * n * t
        if m <= MOST_FACTORED:
            # Beside the sample's Gram matrix, two factors, and of landmarks that of their kernel.
            return total + (32.0 if self.landmarks else 16.0) * m**2
        if self.landmarks:
            return total + (16.0 if self.precise else 12.0) * m**2
        sample = self._rows_of_sample
        return total + 4.0 * sample * m + 24.0 * sample**2

    def bytes_of_row(self) -> float:
        """Return what iterations store of a row."""
        return (8.0 if self.precise else 4.0) * self.features


@dataclass(frozen=True)
class Plan:
    """The solver of a fit, of how many rows iterations store features, and what it will take.

    `reason` says why this solver was taken, where there was a choice.
    """

    solver: str
    stored: int = 0
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
        plans.append(Plan("gram", 0, predicted, problem.bytes_of_sums()))
    if solver != "gram" and problem.bytes_of_iterations() <= limit:
        stored = _rows_to_store(problem, to_store)
        # What this machine happens to have free must not decide on the solver.
        usual = _SHARE_TO_STORE * _USUAL_MEMORY if memory_budget is None else to_store
        work = problem.work_of_iterations(stored=_rows_to_store(problem, usual) / problem.rows)
        bytes = problem.bytes_of_iterations() + stored * problem.bytes_of_row()
        plans.append(Plan("cg", stored, seconds(work), bytes))
    return plans


def _rows_to_store(problem: Problem, bytes: float) -> int:
    """Return of how many rows iterations can store features in so many bytes."""
    left = max(bytes - problem.bytes_of_iterations(), 0.0)
    return min(int(left / problem.bytes_of_row()), problem.rows)


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
        least = min(least, problem.bytes_of_iterations())
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
