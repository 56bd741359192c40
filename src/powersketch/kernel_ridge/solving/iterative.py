"""Ridge regression by conjugate gradients, for features that are too many for a Gram matrix.

A Gram matrix of m features costs n m² operations, a step of the iteration 4 n m for every target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from powersketch.arrays import Float64, Vector
from powersketch.execution import blas_threads
from powersketch.kernel_ridge.solving.left_out import LeftOut
from powersketch.kernel_ridge.solving.preconditioners import Trial, side_by_side, stacked
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
# Of the trace, for the least alpha; and for the first: errors of much smaller ones may be alike,
# those of the precision.
_SMALLEST_SHARE, _LEAST_FIRST_SHARE = 1e-10, 1e-6
# Errors have levelled off if so many steps have not lowered them by this share.
_PATIENCE, _LEAST_GAIN = 5, 5e-4
_SLACK = 1e-2
# A residual that is good enough where the precision of what is stored does not allow tol.
_GOOD_RESIDUAL = 1e-2
# To warn of, after errors of rows held out have levelled off.
_NO_RESIDUAL = 0.3
_LEAST_OF_FLOAT32 = 1e-4
_MOST_STEPS = 2000
PATIENCE_TO_TOLERANCE, PATIENCE_TO_PLATEAU = 1.0, 2.0
"""Steps with a preconditioner take this many times as long as a better one: until errors level off,
there are fewer steps that it could save."""

_NONE = np.empty(0, np.intp)
_LEAST_WEIGHT = 1e-300
_LEAST_GAIN_OF_ALPHA = 1e-3  # of the error, or of what is explained, to go on in a direction
# Alphas whose iterations share all products and one preconditioner, by this ratio.
_TOGETHER, _RATIO = 3, 10.0**0.5
_MOST_ROUNDS = 8


class _StackedSystem(SymmetricOperator):
    """ΦᵀWΦ + alpha I for several alphas, or several W: vectors are stacked, products shared."""

    def __init__(self, products: RowProducts, alphas: Sequence[float]) -> None:
        super().__init__(products.size * products.sides * len(alphas))
        self._products, self._alphas = products, np.asarray(alphas)
        self.rounding = float(np.finfo(np.float32).eps)
        self.alpha = float(min(alphas))

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"normal equations of {self._products.size} features"

    def _matmat(self, V: Any) -> Any:
        beside = side_by_side(V, len(self._alphas) * self._products.sides)
        penalties = np.repeat(self._alphas, beside.shape[1] // len(self._alphas))
        return stacked(self._products.normal_product(beside) + beside * penalties, V.shape[1])


@dataclass
class _HeldOut:
    """What an alpha got so far at the rows held out, by the step that counts, and at the least."""

    error: float = np.inf
    least: float = np.inf
    wrong: float = 1.0
    coef: Float64 = field(default_factory=lambda: np.empty(0))
    intercept: Vector = field(default_factory=lambda: np.empty(0))
    predictions: Float64 = field(default_factory=lambda: np.empty(0))


class _Watch:
    """Looks at rows held out after every step, and tells when their errors have levelled off.

    Where there are several sides, the first is that without these rows.
    """

    def __init__(
        self, products: BlockProducts, held: Any, alphas: Sequence[float], *, classifies: bool
    ) -> None:
        self.found = {alpha: _HeldOut() for alpha in alphas}
        # The solution for an alpha that is known is what was asked for, even if a step before it
        # was a little better; that step counts where rounding errors have taken over since.
        self._slack = _SLACK if products.sides > 1 else 0.0
        self.errors: list[float] = []
        self._products, self._held, self._classifies = products, held, classifies
        self._targets, self._weights = products.targets[held], products.all_weights[held]

    def __call__(self, solutions: Float64) -> bool:
        """Note the errors of solutions, stacked for all alphas; tell whether to stop."""
        products, columns = self._products, solutions.shape[1]
        beside = side_by_side(solutions, len(self.found) * products.sides)
        every = np.split(beside, len(self.found), axis=1)
        fitted = products.product(np.hstack([coef[:, :columns] for coef in every]), self._held)
        of_alphas = np.split(fitted, len(self.found), axis=1)
        for best, coef, predictions in zip(self.found.values(), every, of_alphas, strict=True):
            self._note(best, coef, products.intercept(coef), predictions)
        self.errors.append(min(best.error for best in self.found.values()))
        before = self.errors[:-_PATIENCE]
        return bool(before) and self.errors[-1] > (1.0 - _LEAST_GAIN) * min(before)

    def _note(self, best: _HeldOut, coef: Float64, intercept: Vector, fitted: Float64) -> None:
        predictions = fitted + intercept[: fitted.shape[1]]
        squares = np.mean((self._targets - predictions) ** 2, axis=1)
        total = max(float(self._weights.sum()), _LEAST_WEIGHT)
        error = float(self._weights @ squares) / total
        if error < best.least * (1.0 + self._slack):
            best.least, best.error = min(error, best.least), error
            best.coef, best.intercept, best.predictions = coef.copy(), intercept, predictions
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
        search = _Search(self, products, held)
        best = search.chosen(alphas, start) if isinstance(alpha, str) else alpha
        path = search.path() if isinstance(alpha, str) else {}
        found = search.finish(best)
        left_out = LeftOut(
            found.predictions, products.targets[held], np.ones(count), products.all_weights[held]
        )
        # The last side is that of all rows.
        columns = products.targets.shape[1]
        coef, intercept = found.coef[:, -columns:], found.intercept[-columns:]
        result = replace(search.last, x=coef, errors=np.array(search.errors))
        return self._solution(products, coef, intercept, best, **path), left_out, result

    def solve_given(
        self, products: BlockProducts, alpha: float
    ) -> tuple[RidgeSolution, SolverResult]:
        """Return the solution for one alpha to the tolerance, with no row held out."""
        products.leave_out(_NONE)
        trials = products.inverses(alpha, PATIENCE_TO_TOLERANCE)
        result = self.iterated(products, [alpha], trials)
        good = 0.0 if products.least_residual < _LEAST_OF_FLOAT32 else _GOOD_RESIDUAL
        if not result.interrupted and result.residual > good:
            warn_if_not_converged(result)
        intercept = products.intercept(result.x)
        return self._solution(products, result.x, intercept, alpha), result

    def iterated(
        self,
        products: RowProducts,
        alphas: Sequence[float],
        trials: Iterable[Trial],
        *,
        x0: Float64 | None = None,
        until: Callable[[Float64], bool] | None = None,
    ) -> SolverResult:
        """Return solutions for all alphas and sides, one below the other, by trial after trial."""
        right = products.right_side()
        count, columns = len(alphas) * products.sides, right.shape[1] // products.sides
        right = np.tile(stacked(right, columns), (len(alphas), 1))
        results: list[SolverResult] = []
        ended = False

        def seen(solutions: Float64) -> bool:
            nonlocal ended
            ended = until is not None and until(solutions)
            return ended

        try:
            for trial in trials:
                # Threads of BLAS would wait by spinning, at the expense of those that share rows.
                with blas_threads(1):
                    result = conjugate_gradients(
                        _StackedSystem(products, alphas),
                        right,
                        preconditioner=trial.of_each(count),
                        tol=max(self.tol, products.least_residual),
                        max_iterations=int(min(trial.steps, _MOST_STEPS)),
                        x0=results[-1].x if results else x0,
                        until=None if until is None else seen,
                        keep_interrupted=True,
                        verbose=self.verbose,
                    )
                results.append(result)
                if result.converged or result.interrupted or ended:
                    break
        except KeyboardInterrupt:
            if not results:
                raise
            message = "interrupted; the last solution with the preconditioner before was kept."
            results[-1] = replace(results[-1], interrupted=True, message=message)
        return reduce(_continued, results)

    def _solution(
        self,
        products: BlockProducts,
        coef: Float64,
        intercept: Vector,
        alpha: float,
        **path: Any,
    ) -> RidgeSolution:
        shape = products.rows.targets.shape[1:]
        return RidgeSolution(
            np.ascontiguousarray(coef.T.reshape((*shape, -1))),
            intercept.reshape(shape),
            alpha,
            self.fit_intercept,
            **path,
        )


class _Search:
    """Alphas that are tried, a few at a time, and what they get at rows held out."""

    def __init__(self, ridge: IterativeRidge, products: BlockProducts, held: Any) -> None:
        self._ridge, self._products, self._held = ridge, products, held
        targets, weights = products.targets[held], products.all_weights[held]
        shares = weights / max(float(weights.sum()), _LEAST_WEIGHT)
        self._variance = float(shares @ np.mean((targets - shares @ targets) ** 2, axis=1))
        self.tried: dict[float, _HeldOut] = {}
        self.errors: list[float] = []
        self.last: SolverResult

    def chosen(self, alphas: Vector | None, start: float | None) -> float:
        """Return the best of given alphas, or of those around a start."""
        self._products.leave_out(self._held)
        if alphas is not None:
            self.try_all(alphas[::-1].tolist())
        else:
            trace = self._products.trace() or 1.0
            least = _SMALLEST_SHARE * trace
            start = start or max(self._products.likely_alpha(), _LEAST_FIRST_SHARE * trace)
            self.descend(max(start, least), least)
        return self.best()[0]

    def path(self) -> dict[str, Any]:
        """Return the alphas that were tried and their errors, as a solution has them."""
        tried = sorted(self.tried)
        scores = np.array([self.tried[value].error for value in tried])
        return {"alphas": np.array(tried), "scores": scores}

    def finish(self, alpha: float) -> _HeldOut:
        """Return what an alpha gets with all rows, iterated beside those without the held-out."""
        if self.tried and self.last.interrupted:
            return self.tried[alpha]
        first = self.tried[alpha].coef if self.tried else None
        try:
            self._products.leave_out(self._held, _NONE)
            found = self._iterated([alpha], first)[alpha]
        except KeyboardInterrupt as interrupt:
            self._keep(interrupt, "all rows took part")
            return self.tried[alpha]
        if not self.last.interrupted and self.last.residual > _NO_RESIDUAL:
            warn_if_not_converged(self.last)
        return found

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
            if self.last.interrupted or not self._gains(best):
                return
            centre = best / _RATIO**2 if best == min(self.tried) else best * _RATIO**2

    def _gains(self, best: float) -> bool:
        """Tell whether the best alpha is an end, and clearly better than the one beside it."""
        alphas = sorted(self.tried)
        if best not in (alphas[0], alphas[-1]):
            return False
        end = self.tried[best]
        beside = self.tried[alphas[1 if best == alphas[0] else -2]]
        explained = max(self._variance - end.error, 0.0)
        least = _LEAST_GAIN_OF_ALPHA * min(beside.error, explained)
        return end.wrong < beside.wrong or beside.error - end.error > least

    def _keep(self, interrupt: KeyboardInterrupt, before: str) -> None:
        """Let an interrupt outside of iterations end the search, if something was found."""
        if not self.tried:
            raise interrupt
        message = f"interrupted before {before}; the best so far was kept: {self.last.message}"
        self.last = replace(self.last, interrupted=True, message=message)

    def _try(self, alphas: Sequence[float]) -> None:
        try:
            self.tried |= self._iterated(alphas, self.best()[1].coef if self.tried else None)
        except KeyboardInterrupt as interrupt:
            self._keep(interrupt, f"alpha={alphas[0]:.3g} was tried")

    def _iterated(self, alphas: Sequence[float], first: Float64 | None) -> dict[float, _HeldOut]:
        """Iterate until errors level off, from the same coefficients for all alphas and sides."""
        products, count = self._products, len(alphas) * self._products.sides
        watch = _Watch(products, self._held, alphas, classifies=self._ridge.classifies)
        middle = float(np.exp(np.mean(np.log(np.maximum(alphas, _LEAST_WEIGHT)))))
        self.last = self._ridge.iterated(
            products,
            alphas,
            products.inverses(middle, PATIENCE_TO_PLATEAU),
            x0=None if first is None else np.tile(first, (count, 1)),
            until=watch,
        )
        if not watch.errors:
            watch(self.last.x.reshape(len(self.last.x), -1))
        self.errors += watch.errors
        return watch.found


def _continued(earlier: SolverResult, later: SolverResult) -> SolverResult:
    """Return the result of a solver that went on from an earlier one."""
    steps = f"{earlier.iterations} iterations with {earlier.preconditioner} went before"
    return replace(
        later,
        iterations=earlier.iterations + later.iterations,
        history=np.concatenate((earlier.history[:-1], later.history)),
        message=f"{later.message} {steps}.",
    )


def _wrong_share(predictions: Float64, targets: Float64) -> float:
    """Return how many rows have another class than the largest prediction, as a share."""
    if targets.shape[1] == 1:
        return float(np.mean((predictions > 0.0) != (targets > 0.0)))
    return float(np.mean(predictions.argmax(axis=1) != targets.argmax(axis=1)))
