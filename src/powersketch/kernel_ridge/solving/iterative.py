"""Ridge regression by conjugate gradients, for features that are too many for a Gram matrix.

A Gram matrix of m features costs n m² operations, a step of the iteration 4 n m for every target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from powersketch.arrays import Float64, Vector
from powersketch.kernel_ridge.solving.left_out import LeftOut
from powersketch.kernel_ridge.solving.row_products import BlockProducts, RowProducts
from powersketch.kernel_ridge.solving.statistics import RidgeSolution
from powersketch.linalg import (
    SolverResult,
    SymmetricOperator,
    conjugate_gradients,
    warn_if_not_converged,
)
from powersketch.random_streams import RandomStreams

MOST_DENSE_COLUMNS = 4096
"""Sparse rows of more columns are not made dense for a linear part."""

JITTER_OF_STORED = 1e-5
"""The jitter of landmarks that keeps rounding errors of values in float32 small in features."""

# One row in ten is held out where alpha is chosen: rows cannot be left out one at a time.
_HELD_OUT = 10
_MOST_HELD_OUT = 4096
_SMALLEST_SHARE, _USUAL_SHARE = 1e-10, 1e-6  # of the trace, for the least alpha and the first
# Errors have levelled off if so many steps have not lowered them by this share.
_PATIENCE, _LEAST_GAIN = 3, 1e-3
# A residual that is good enough where the precision of what is stored does not allow tol.
_GOOD_RESIDUAL = 1e-2
# With all rows, after errors of those held out have levelled off: to aim at, and to warn of.
_LAST_RESIDUAL, _NO_RESIDUAL = 3e-3, 0.3
_LEAST_OF_FLOAT32 = 1e-4
_MOST_STEPS, _LAST_STEPS = 2000, 6
_LEAST_WEIGHT = 1e-300
# Alphas whose iterations share all products and one preconditioner, by this ratio.
_TOGETHER, _RATIO = 3, 10.0**0.5
_MOST_ROUNDS = 8


class _StackedSystem(SymmetricOperator):
    """ΦᵀWΦ + alpha I for several alphas: vectors for them are stacked, products are shared."""

    def __init__(self, products: RowProducts, alphas: Sequence[float]) -> None:
        super().__init__(products.mean.size * len(alphas))
        self._products, self._alphas = products, np.asarray(alphas)
        self.rounding = float(np.finfo(np.float32).eps)
        self.alpha = float(min(alphas))

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"normal equations of {self._products.mean.size} features"

    def _matmat(self, V: Any) -> Any:
        beside = side_by_side(V, len(self._alphas))
        penalties = np.repeat(self._alphas, V.shape[1])
        return stacked(self._products.normal_product(beside) + beside * penalties, V.shape[1])


def side_by_side(V: Float64, count: int) -> Float64:
    """Return `count` blocks of rows that lie one below the other side by side."""
    return np.hstack(np.split(V, count)) if count > 1 else V


def stacked(V: Float64, columns: int) -> Float64:
    """Return blocks of so many columns one below the other."""
    return np.vstack(np.split(V, V.shape[1] // columns, axis=1)) if V.shape[1] > columns else V


@dataclass
class _HeldOut:
    """What an alpha got so far at the rows held out; the best step counts."""

    error: float = np.inf
    wrong: float = 1.0
    coef: Float64 = field(default_factory=lambda: np.empty(0))
    predictions: Float64 = field(default_factory=lambda: np.empty(0))
    residual: float = 1.0


class _Watch:
    """Looks at rows held out after every step, and tells when their errors have levelled off."""

    def __init__(
        self, products: BlockProducts, held: Any, alphas: Sequence[float], *, classifies: bool
    ) -> None:
        self.found = {alpha: _HeldOut() for alpha in alphas}
        self.errors: list[float] = []
        self._products, self._held, self._classifies = products, held, classifies
        self._targets, self._weights = products.targets[held], products.all_weights[held]

    def __call__(self, solutions: Float64) -> bool:
        """Note the errors of solutions, stacked for all alphas; tell whether to stop."""
        beside = side_by_side(solutions, len(self.found))
        columns = solutions.shape[1]
        fitted = self._products.product(beside, self._held)
        for number, best in enumerate(self.found.values()):
            part = slice(number * columns, (number + 1) * columns)
            coef = beside[:, part]
            self._note(best, coef, fitted[:, part] + self._products.intercept(coef))
        self.errors.append(min(best.error for best in self.found.values()))
        before = self.errors[:-_PATIENCE]
        return bool(before) and self.errors[-1] > (1.0 - _LEAST_GAIN) * min(before)

    def _note(self, best: _HeldOut, coef: Float64, predictions: Float64) -> None:
        squares = np.mean((self._targets - predictions) ** 2, axis=1)
        total = max(float(self._weights.sum()), _LEAST_WEIGHT)
        error = float(self._weights @ squares) / total
        if error < best.error:
            best.error, best.coef, best.predictions = error, coef.copy(), predictions
            best.wrong = _wrong_share(predictions, self._targets) if self._classifies else 0.0


@dataclass(frozen=True, eq=False)
class IterativeRidge:
    """Ridge regression by iterations on products with rows.

    Rows are held out where alpha is chosen, or where their predictions are asked for; iterations
    then end when the errors there have levelled off, and else by `tol`.
    """

    fit_intercept: bool
    tol: float
    seed: int
    classifies: bool = False
    verbose: int = 0

    def solve(
        self,
        products: BlockProducts,
        alpha: float | str,
        alphas: Vector | None,
        start: float | None,
    ) -> tuple[RidgeSolution, LeftOut, SolverResult]:
        """Return the solution, predictions of rows that were held out, and how it went."""
        rows = products.rows.count
        count = min(max(rows // _HELD_OUT, 1), _MOST_HELD_OUT, rows - 1)
        streams = RandomStreams(self.seed, "kernel-ridge/held-out")
        held = np.sort(streams.sample("rows", rows, count))
        products.leave_out(held)
        search = _Search(self, products, held)
        if not isinstance(alpha, str):
            search.try_all([alpha])
        elif alphas is not None:
            search.try_all(alphas[::-1].tolist())
        else:
            trace = products.trace() or 1.0
            least = _SMALLEST_SHARE * trace
            search.descend(max(start or _USUAL_SHARE * trace, least), least)
        best, found = search.best()
        left_out = LeftOut(
            found.predictions, products.targets[held], np.ones(count), products.all_weights[held]
        )
        coef, result = found.coef, search.last
        if not result.interrupted:
            try:
                coef, result = self._solve_with_all_rows(products, best, found)
            except KeyboardInterrupt:
                result = interrupted_before(result, "all rows took part")
        result = replace(result, x=coef, errors=np.array(search.errors))
        path: dict[str, Any] = {}
        if isinstance(alpha, str):
            tried = sorted(search.tried)
            path["alphas"] = np.array(tried)
            path["scores"] = np.array([search.tried[value].error for value in tried])
        return self._solution(products, coef, best, **path), left_out, result

    def _solve_with_all_rows(
        self, products: BlockProducts, alpha: float, found: _HeldOut
    ) -> tuple[Float64, SolverResult]:
        """Go on from what was found without the rows held out, and with these."""
        products.leave_out(np.empty(0, np.intp))
        # Errors of most rows level off before those of a few that are far from all others.
        tol = max(self.tol, min(found.residual, _LAST_RESIDUAL))
        good = max(_NO_RESIDUAL, found.residual)
        return self._solve_for(products, alpha, tol, found.coef, _LAST_STEPS, good)

    def solve_given(
        self, products: BlockProducts, alpha: float
    ) -> tuple[RidgeSolution, SolverResult]:
        """Return the solution for one alpha to the tolerance, with no row held out."""
        good = 0.0 if products.least_residual < _LEAST_OF_FLOAT32 else _GOOD_RESIDUAL
        coef, result = self._solve_for(products, alpha, self.tol, None, _MOST_STEPS, good)
        return self._solution(products, coef, alpha), result

    def _solve_for(
        self,
        products: BlockProducts,
        alpha: float,
        tol: float,
        first: Float64 | None,
        steps: int,
        good: float,
    ) -> tuple[Float64, SolverResult]:
        """Return coefficients of shape (m, t), and warn if they are not even good."""
        system, right = _StackedSystem(products, [alpha]), products.right_side()
        result = conjugate_gradients(
            system,
            right,
            preconditioner=products.inverse(alpha),
            tol=max(tol, products.least_residual),
            max_iterations=steps,
            x0=first,
            keep_interrupted=True,
            verbose=self.verbose,
        )
        if not result.interrupted and result.residual > good:
            warn_if_not_converged(result)
        return result.x, result

    def _solution(
        self, products: BlockProducts, coef: Float64, alpha: float, **path: Any
    ) -> RidgeSolution:
        shape = products.rows.targets.shape[1:]
        return RidgeSolution(
            np.ascontiguousarray(coef.T.reshape((*shape, -1))),
            products.intercept(coef).reshape(shape),
            alpha,
            self.fit_intercept,
            **path,
        )


def interrupted_before(result: SolverResult, what: str) -> SolverResult:
    """Return the last result as that of an interrupted solver, which keeps it."""
    message = f"interrupted before {what}; the best solution so far was kept: {result.message}"
    return replace(result, interrupted=True, message=message)


class _Search:
    """Alphas that were tried, a few at a time, and what they got at rows held out."""

    def __init__(self, ridge: IterativeRidge, products: BlockProducts, held: Any) -> None:
        self._ridge, self._products, self._held = ridge, products, held
        self.tried: dict[float, _HeldOut] = {}
        self.errors: list[float] = []
        self.last: SolverResult

    def best(self) -> tuple[float, _HeldOut]:
        """Return the best alpha; of classes, the one that tells most of them apart."""
        best = min(self.tried, key=lambda a: (self.tried[a].wrong, self.tried[a].error))
        return best, self.tried[best]

    def try_all(self, alphas: Sequence[float]) -> None:
        """Try given alphas, those that are near each other together, from the largest on."""
        group: list[float] = []
        for alpha in alphas:
            if group and (len(group) == _TOGETHER or group[0] > _RATIO**_TOGETHER * alpha):
                self._try(group)
                if self.last.interrupted:
                    return
                group = []
            group.append(alpha)
        self._try(group)

    def descend(self, start: float, least: float) -> None:
        """Try alphas around a start, and on in a direction while it gets better there."""
        centre = start
        for _ in range(_MOST_ROUNDS):
            values = {max(centre * _RATIO**power, least) for power in (1, 0, -1)}
            new = sorted(values - self.tried.keys(), reverse=True)
            if not new:
                return
            self._try(new)
            best = self.best()[0]
            if self.last.interrupted:
                return
            if best == min(self.tried):
                centre = best / _RATIO**2
            elif best == max(self.tried):
                centre = best * _RATIO**2
            else:
                return

    def _try(self, alphas: Sequence[float]) -> None:
        products = self._products
        watch = _Watch(products, self._held, alphas, classifies=self._ridge.classifies)
        first = np.tile(self.best()[1].coef, (len(alphas), 1)) if self.tried else None
        middle = float(np.exp(np.mean(np.log(np.maximum(alphas, _LEAST_WEIGHT)))))
        try:
            invert = products.inverse(middle)
        except KeyboardInterrupt:
            if not self.tried:
                raise
            self.last = interrupted_before(self.last, f"alpha={middle:.3g} was tried")
            return

        def inverse(V: Float64) -> Float64:
            return stacked(invert(side_by_side(V, len(alphas))), V.shape[1])

        result = conjugate_gradients(
            _StackedSystem(products, alphas),
            np.tile(products.right_side(), (len(alphas), 1)),
            preconditioner=inverse,
            tol=max(self._ridge.tol, products.least_residual),
            max_iterations=_MOST_STEPS,
            x0=first,
            until=watch,
            keep_interrupted=True,
            verbose=self._ridge.verbose,
        )
        if not watch.errors:
            watch(result.x.reshape(len(result.x), -1))
        for found in watch.found.values():
            found.residual = result.residual
        self.last = result
        self.tried |= watch.found
        self.errors += watch.errors


def _wrong_share(predictions: Float64, targets: Float64) -> float:
    """Return how many rows have another class than the largest prediction, as a share."""
    if targets.shape[1] == 1:
        return float(np.mean((predictions > 0.0) != (targets > 0.0)))
    return float(np.mean(predictions.argmax(axis=1) != targets.argmax(axis=1)))
