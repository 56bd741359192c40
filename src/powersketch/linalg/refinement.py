"""Linear systems, and cycles of a solver between which residuals are computed anew.

A solver's own residual, be it by recursion or from rounded products, drifts away from the true
one. Iterating once more on the true one is iterative refinement: it gives float64 accuracy even
where all products but one in a cycle are rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from powersketch.arrays import Float64, Vector, divide_or_zero
from powersketch.exceptions import InputError, warn_user
from powersketch.execution import Progress
from powersketch.linalg.operators import as_operator, near_one
from powersketch.storable import storable
from powersketch.validation import checked_columns

# From (n, t) vectors to (n, t) vectors.
BlockFunction: TypeAlias = Callable[[Float64], Float64]
Callback: TypeAlias = Callable[[int, float], object]
Mask: TypeAlias = NDArray[np.bool_]

# In the norm of A every step of conjugate gradients lowers the error, so that residuals are never
# above the root of the condition number times the first one: with more than this, the matrix is
# singular to working precision, and what is iterated is rounding errors.
LARGEST_GROWTH = float(np.finfo(np.float64).eps) ** -0.5
_PRECISION = float(np.finfo(np.float64).eps)
_MARGIN = 0.75


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SolverResult:
    """The solution of a linear system A x = b and what is known of its error.

    Attributes
    ----------
    x : ndarray of shape (n,) or (n, t) and dtype float64
        The solution, in the shape of b.
    converged : bool
        Whether every column of the solution meets the tolerance.
    iterations : int
        Steps of the solver, each for all right-hand sides that had not converged yet.
    residual : float
        ‖b − A x‖ / ‖b‖ of the worst column, computed from x and not by recursion, unless the
        iterations were ended from outside.
    residuals : ndarray of shape (t,)
        The same for every column.
    history : ndarray of shape (iterations + 1,)
        The worst relative residual before the first step and after every one. The solver's
        recursion gives them, except for the last, which is `residual`.
    message : str
        What was reached, in words, with advice where the solver failed.
    operator, preconditioner : str
        What A was, and what approximated its inverse.
    residual_interval : tuple of two floats or None
        Where `residual` is an estimate, the limits it lies between; None where it is exact.
    interrupted : bool
        Whether an interrupt (Ctrl-C) ended the iterations.
    errors : ndarray of shape (s,) or None
        What rows that were held out had as errors after every step, if any were.
    """

    x: Float64
    converged: bool
    iterations: int
    residual: float
    residuals: Vector
    history: Vector
    message: str
    operator: str
    preconditioner: str
    residual_interval: tuple[float, float] | None = None
    interrupted: bool = False
    errors: Vector | None = None

    def __repr__(self) -> str:
        interval = ""
        if self.residual_interval is not None:
            low, high = self.residual_interval
            interval = f" (estimated, between {low:.2g} and {high:.2g})"
        return (
            f"SolverResult(converged={self.converged}, iterations={self.iterations}, "
            f"residual={self.residual:.2g}{interval}, x of shape {self.x.shape},\n"
            f"  operator: {self.operator}; preconditioner: {self.preconditioner},\n"
            f"  message: {self.message})"
        )


def warn_if_not_converged(result: SolverResult) -> None:
    """Issue scikit-learn's ConvergenceWarning with the message of a result that failed."""
    if not result.converged:
        warn_user(result.message, ConvergenceWarning)


class Product(NamedTuple):
    """A way to multiply (n, t) vectors by a matrix, and its machine epsilon."""

    multiply: BlockFunction
    rounding: float


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """A x = b for several b at once, each scaled to norm one, so that residuals are relative.

    The norm of a column of b is `norms` times two to the power of `exponents`: its value itself
    may be beyond the range of numbers.
    """

    operator: Any
    right: Float64
    start: Float64
    norms: Vector
    exponents: NDArray[np.int32]
    shape: tuple[int, ...]

    @classmethod
    def checked(cls, operator: Any, b: ArrayLike, x0: ArrayLike | None) -> Self:
        """Return the system, or say what is wrong with its parts."""
        operator = as_operator("operator", operator)
        size = operator.shape[0]
        if operator.shape != (size, size):
            raise InputError(f"the operator has shape {operator.shape}; allowed is (n, n).")
        why = ", as the operator has that many rows"
        right = checked_columns("b", b, size, why)
        shape = right.shape
        start = np.zeros_like(right)
        if x0 is not None:
            if np.shape(x0) != shape:
                raise InputError(
                    f"x0 has shape {np.shape(x0)}; allowed is that of b, {shape}: give an entry "
                    "of x0 for every entry of b."
                )
            start = checked_columns("x0", x0, size, why)
        right, exponents = near_one(right.reshape(size, -1))
        norms = column_norms(right)
        # Zero is the solution for zero.
        inverse = divide_or_zero(1.0, norms)
        with np.errstate(over="ignore"):
            start = np.ldexp(start.reshape(size, -1), -exponents) * inverse
        # Next to such a b even zero is nearer to the solution.
        start[~np.isfinite(start)] = 0.0
        return cls(operator, right * inverse, start, norms, exponents, shape)

    def products(self) -> list[Product]:
        """Return the ways to multiply by A, the quickest first."""
        rounding = getattr(self.operator, "rounding", _PRECISION)
        products = [Product(self.operator.matmat, rounding)]
        if rounding > _PRECISION and hasattr(self.operator, "exact_product"):
            products.append(Product(self.exact_product, _PRECISION))
        return products

    def exact_product(self, V: Float64) -> Float64:
        """Return A V as accurately as the operator can."""
        product: Float64 = getattr(self.operator, "exact_product", self.operator.matmat)(V)
        return product

    def first_residuals(self) -> tuple[Float64, Float64]:
        """Return where to start and the residuals there."""
        x, residuals = self.start.copy(), self.right.copy()
        if x.any():
            with np.errstate(over="ignore", invalid="ignore"):
                residuals -= self.exact_product(x)
                useless = ~np.isfinite(column_norms(residuals))
            # So large next to b that zero is nearer to the solution.
            x[:, useless], residuals[:, useless] = 0.0, self.right[:, useless]
        return x, residuals

    def unscaled(self, x: Float64) -> Float64:
        """Return the solution for b as it was given, infinite where it is out of range."""
        with np.errstate(over="ignore"):
            return np.ldexp(x * self.norms, self.exponents).reshape(self.shape)


class IterationLog:
    """The relative residuals so far, reported to the user after every step.

    `columns` are the right-hand sides of the cycle that runs at present.
    """

    def __init__(
        self,
        what: str,
        max_iterations: int,
        callback: Callback | None,
        verbose: int,
        until: Callable[[Float64], bool] | None = None,
    ) -> None:
        self._limit, self._callback, self._until = max_iterations, callback, until
        self.ended = self.interrupted = self.keeps_interrupted = False
        self.solution_with: BlockFunction = np.copy
        self._progress = (
            Progress(what, max_iterations, verbose, unit="iterations") if verbose else None
        )
        self.columns: NDArray[np.intp] = np.zeros(0, np.intp)
        self.relative: Vector = np.zeros(0)
        self.history: list[float] = []

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return len(self.history) - 1

    @property
    def remaining(self) -> int:
        """How many steps may follow."""
        return 0 if self.ended or self.interrupted else self._limit - self.iterations

    def begin(self, relative: Vector) -> None:
        """Note the residuals at the start."""
        self.relative = relative.copy()
        self.history.append(float(relative.max()))

    def record(
        self,
        numbers: NDArray[np.intp],
        relative: Vector,
        solutions: Callable[[], Float64] | None = None,
    ) -> None:
        """Note the residuals after a step of some columns, by their numbers in the cycle.

        `solutions` returns those of the cycle, for who wants to see them.
        """
        self.relative[self.columns[numbers]] = relative
        self.history.append(float(self.relative.max()))
        if self._progress is not None:
            self._progress.update(self.iterations, f", residual {self.history[-1]:.1e}")
        if self._callback is not None:
            self._callback(self.iterations, self.history[-1])
        if self._until is not None and solutions is not None:
            self.ended = self._until(self.solution_with(solutions()))

    def correct(self, relative: Vector) -> None:
        """Replace the residuals of the cycle by the true ones."""
        self.relative[self.columns] = relative
        self.history[-1] = float(self.relative.max())

    def end(self) -> None:
        """Finish the line of progress, if the last step has not."""
        if self._progress is not None and 0 < self.iterations < self._limit:
            self._progress.finish(self.iterations, f", residual {self.history[-1]:.1e}")


class Cycle(Protocol):
    """A solver that starts at zero."""

    def __call__(
        self, product: Product, right: Float64, goal: float, log: IterationLog
    ) -> tuple[Float64, Mask]:
        """Return approximate solutions for `right`, and for which of them the method failed.

        It iterates until every residual is below the goal or lost in rounding errors, or no
        steps remain in the log.
        """


def refine(
    system: LinearSystem,
    cycle: Cycle,
    tol: float,
    log: IterationLog,
    *,
    preconditioner: Any,
    failure: str,
) -> SolverResult:
    """Run cycles until the true residuals meet the tolerance or do not get smaller by half.

    `failure` says what it means that the method itself failed.
    """
    x, residuals = system.first_residuals()
    log.begin(column_norms(residuals))
    products = system.products()
    columns = np.flatnonzero(log.relative > tol)
    stalled = failed = False
    # Residuals by rounded products may be a little below the true ones, and another cycle, which
    # knows nothing of the directions of the first, would take many steps for that little.
    goal = tol if products[0].rounding <= _PRECISION else _MARGIN * tol
    while columns.size and log.remaining:
        before, log.columns = log.relative[columns], columns
        log.solution_with = partial(_with_correction, system, x, columns)
        correction, broken = cycle(products[0], residuals[:, columns], goal, log)
        if log.ended or log.interrupted:
            # Nobody waits for another product: what the recursion says has to do.
            x[:, columns] += correction
            break
        candidates = x[:, columns] + correction
        fresh = system.right[:, columns] - system.exact_product(candidates)
        after = column_norms(fresh)
        # Before its last step a method may be above where it began, and yet nearer to the goal;
        # but a start other than zero is the best that is known, and is not to be lost.
        nearer = ~x[:, columns].any(axis=0) & (after <= LARGEST_GROWTH * before)
        better = (after < before) | (nearer & (log.remaining == 0))
        x[:, columns[better]] = candidates[:, better]
        residuals[:, columns[better]] = fresh[:, better]
        log.correct(np.where(better, after, before))
        unfinished = ~(after <= tol)
        stuck = unfinished & ~(after <= before / 2.0) & (log.remaining > 0)
        if stuck.any() and len(products) > 1:
            # Products of the lower precision cannot get any further.
            del products[0]
            stuck[:] = False
        stalled, failed = stalled or bool(stuck.any()), failed or bool((stuck & broken).any())
        columns = columns[unfinished & ~stuck]
        # A little below the tolerance, as the next true residual will be a little higher.
        goal = tol / 2.0
    log.end()
    stop = None
    if log.interrupted:
        stop = "interrupted", "the solution so far was kept"
    elif log.ended:
        stop = "ended", "as was asked for"
    elif failed:
        stop = "stopped", failure
    elif stalled:
        stop = (
            "stagnated",
            (
                f"the precision allows about {_PRECISION:.1e} times the condition number, and of a "
                "singular matrix that is infinite: use a larger tol or "
                f"{larger_alpha(system.operator)}"
            ),
        )
    return _result(system, system.unscaled(x), tol, log, describe(preconditioner), stop)


def _with_correction(
    system: LinearSystem, x: Float64, columns: NDArray[np.intp], correction: Float64
) -> Float64:
    """Return the solution with what a cycle has added so far to some columns."""
    corrected = x.copy()
    corrected[:, columns] += correction
    return system.unscaled(corrected)


def _result(
    system: LinearSystem,
    x: Float64,
    tol: float,
    log: IterationLog,
    preconditioner: str,
    stop: tuple[str, str] | None,
) -> SolverResult:
    """Return the result; `stop` says how and why the method ended before its time, if it did."""
    residual = float(log.relative.max())
    within_range = bool(np.isfinite(x).all())
    steps = "1 iteration" if log.iterations == 1 else f"{log.iterations} iterations"
    reached = f"a residual of {residual:.2g} after {steps}"
    if not within_range:
        message = (
            f"the solution, with {reached}, is beyond the range of float64: solve for a smaller "
            "multiple of b."
        )
    elif residual <= tol:
        message = f"converged to {reached}."
    elif stop is not None:
        message = f"{stop[0]} at {reached}, above tol={tol:g}: {stop[1]}."
    else:
        message = (
            f"not converged: {reached}, the most allowed, is above tol={tol:g}: allow more "
            f"iterations, or use a better preconditioner or {larger_alpha(system.operator)}."
        )
    return SolverResult(
        x=x,
        converged=residual <= tol and within_range,
        iterations=log.iterations,
        residual=residual,
        residuals=log.relative.copy(),
        history=np.array(log.history),
        message=message,
        operator=describe(system.operator),
        preconditioner=preconditioner,
        interrupted=log.interrupted,
    )


def larger_alpha(operator: Any) -> str:
    """Return the advice to regularise more, with the alpha that there is now."""
    now = getattr(operator, "alpha", None)
    return "a larger alpha" if now is None else f"a larger alpha than {now:g}"


def describe(operator: Any) -> str:
    """Return in a few words what an operator or a preconditioner is."""
    if operator is None:
        return "none"
    if hasattr(operator, "describe"):
        return str(operator.describe())
    return str(getattr(operator, "__name__", type(operator).__name__))


def column_norms(V: Float64) -> Vector:
    """Return the Euclidean norm of every column."""
    return np.sqrt(column_products(V, V))


def column_products(V: Float64, W: Float64) -> Vector:
    """Return the inner product of every column of V with the one of W."""
    products: Vector = np.einsum("ij,ij->j", V, W)
    return products
