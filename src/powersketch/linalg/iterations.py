"""Iterations for many right-hand sides at once: conjugate gradients, and gradient descent.

Both take a preconditioner. The second is Algorithm 2 of the paper, with a step that converges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from powersketch.arrays import Float64, Vector
from powersketch.docstrings import documented
from powersketch.exceptions import InputError
from powersketch.linalg.lanczos import ritz_values
from powersketch.linalg.operators import as_operator, near_one
from powersketch.linalg.refinement import (
    LARGEST_GROWTH,
    BlockFunction,
    Callback,
    IterationLog,
    LinearSystem,
    Mask,
    Product,
    SolverResult,
    column_norms,
    column_products,
    larger_alpha,
    refine,
)
from powersketch.parameters import (
    checked_integer,
    checked_positive,
    checked_tolerance,
    checked_verbose,
    one_of,
)
from powersketch.random_streams import RandomStreams, seed_from

_MOST_ITERATIONS = 10_000
_SMALLEST_NORM = 1e-140
# After so many products with a random start, the largest eigenvalue of matrices of any size we
# can store is known to about a percent [KW92]; the margin covers what is missing.
_PRODUCTS_FOR_EIGENVALUES = 30
_MARGIN = 1.05
_IDLE_STEPS = 20
_GROWTH_OF_DIVERGENCE = 1e3


@documented
def conjugate_gradients(
    operator: Any,
    b: ArrayLike,
    *,
    preconditioner: Any = None,
    tol: float = 1e-6,
    max_iterations: int | None = None,
    x0: ArrayLike | None = None,
    callback: Callback | None = None,
    until: Callable[[Float64], bool] | None = None,
    keep_interrupted: bool = False,
    verbose: int = 0,
) -> SolverResult:
    """Solve A x = b for a symmetric positive definite A by conjugate gradients [HS52].

    Every step is one product with all right-hand sides that have not converged yet. When the
    solver's own residual is below the tolerance, or lost in rounding errors, the true one is
    computed; if that is above the tolerance, the solver starts again from there.

    Parameters
    ----------
    operator : LinearOperator, sparse matrix or array of shape (n, n)
        The matrix A. If it has a method ``exact_product``, as the operators of this package have
        it, true residuals are computed with that.
    b : array-like of shape (n,) or (n, t)
        Right-hand sides, finite real numbers. They are left as they are, as all arguments.
    preconditioner : LinearOperator, array of shape (n, n) or callable, default=None
        An approximate inverse of A, symmetric and positive definite. A callable takes and returns
        arrays of shape (n, s), a column for each of s ≤ t right-hand sides.
    tol : float, default=1e-6
        The relative residual ‖b − A x‖ / ‖b‖ to reach in every column, from 1e-15 to below 1.
    max_iterations : int, default=None
        At least 1. None allows 10 n, but no more than 10,000.
    x0 : array-like of the shape of b, default=None
        Where to start; None is zero.
    callback : callable, default=None
        Called after every step with its number and the worst relative residual.
    until : callable, default=None
        Called after every step with the solutions so far, of the shape of b; where it returns
        True, the solver ends there.
    keep_interrupted : bool, default=False
        Whether an interrupt (Ctrl-C) during the iterations ends them with the solution so far, and
        not with an exception.
    %(verbose)s

    Returns
    -------
    SolverResult
        Without an error even where the tolerance was not reached: see `converged`, `message`.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.kernels import Gaussian
    >>> from powersketch.linalg import KernelOperator, conjugate_gradients
    >>> X = np.linspace(0.0, 1.0, 50)[:, np.newaxis]
    >>> operator = KernelOperator(Gaussian(gamma=10.0), X, alpha=0.1)
    >>> result = conjugate_gradients(operator, np.sin(6.0 * X[:, 0]), tol=1e-8)
    >>> result.converged, result.residual <= 1e-8
    (True, True)
    >>> bool(np.allclose(operator @ result.x, np.sin(6.0 * X[:, 0])))
    True
    """
    tol, verbose = checked_tolerance(tol), checked_verbose(verbose)
    system = LinearSystem.checked(operator, b, x0)
    size = system.right.shape[0]
    limit = min(10 * size, _MOST_ITERATIONS)
    if max_iterations is not None:
        limit = checked_integer("max_iterations", max_iterations, 1)
    cycle = _Conjugation(_as_preconditioner(preconditioner, size))
    log = IterationLog("conjugate gradients", limit, callback, verbose, until)
    log.keeps_interrupted = keep_interrupted
    failure = (
        "the matrix or the preconditioner is singular or indefinite to working precision: use "
        f"{larger_alpha(system.operator)} or another preconditioner"
    )
    return refine(system, cycle, tol, log, preconditioner=preconditioner, failure=failure)


@dataclass(frozen=True, eq=False)
class _Conjugation:
    """A cycle of conjugate gradients."""

    invert: BlockFunction

    def __call__(
        self, product: Product, right: Float64, goal: float, log: IterationLog
    ) -> tuple[Float64, Mask]:
        solutions, broken = np.zeros_like(right), np.zeros(right.shape[1], bool)
        block = _Block(right, self.invert)
        try:
            while log.remaining:
                # Where it is not, the preconditioner is not positive definite.
                broken |= block.leave(~_is_positive(block.energies), solutions)
                if not block.numbers.size:
                    break
                images = product.multiply(block.directions)
                curvatures = column_products(block.directions, images)
                if not _is_positive(curvatures).all():
                    broken |= block.leave(~_is_positive(curvatures), solutions)
                    continue
                norms = block.step(images, curvatures)
                log.record(block.numbers, norms, partial(block.current, solutions))
                block.leave((norms <= goal) | block.lost(norms, product.rounding), solutions)
                block.turn(self.invert)
        except KeyboardInterrupt:
            if not log.keeps_interrupted:
                raise
            log.interrupted = True
        block.leave(np.ones(block.numbers.size, bool), solutions)
        return solutions, broken


class _Block:
    """The right-hand sides that are still iterated, a column or an entry of every array each."""

    def __init__(self, right: Float64, invert: BlockFunction) -> None:
        self.numbers = np.arange(right.shape[1])
        self.solutions, self.residuals = np.zeros_like(right), right.copy()
        self.directions = invert(right)
        self.energies = column_products(right, self.directions)
        self.first = column_norms(right)
        self.paths = np.zeros(right.shape[1])
        self.norms_of_matrix = np.zeros(right.shape[1])

    def step(self, images: Float64, curvatures: Vector) -> Vector:
        """Go to the minimum along the directions; return the norms of the residuals there."""
        lengths = self.energies / curvatures
        extents = _norms_of_any_size(self.directions)
        self.paths += lengths * extents
        np.maximum(self.norms_of_matrix, column_norms(images) / extents, out=self.norms_of_matrix)
        self.solutions += lengths * self.directions
        self.residuals -= lengths * images
        return column_norms(self.residuals)

    def lost(self, norms: Vector, rounding: float) -> Mask:
        """Return which residuals are rounding errors, or will end above the first ones by them.

        A product with a direction p is wrong by about the rounding unit times ‖A‖ ‖p‖, and these
        errors add up in the residual. ‖A‖ is at least what it did to the directions so far; where
        that is far below it, residuals of a singular matrix grow all the same.
        """
        drift = rounding / 2.0 * self.norms_of_matrix * self.paths
        grown = norms > LARGEST_GROWTH * self.first
        lost: Mask = (drift >= np.minimum(norms, self.first)) | grown
        return lost

    def turn(self, invert: BlockFunction) -> None:
        """Choose the next directions, conjugate to the last."""
        if not self.numbers.size:
            return
        images = invert(self.residuals)
        energies = column_products(self.residuals, images)
        self.directions *= energies / self.energies
        self.directions += images
        self.energies = energies

    def current(self, solutions: Float64) -> Float64:
        """Return the solutions so far of all columns, of those that left as they were stored."""
        current = solutions.copy()
        current[:, self.numbers] = self.solutions
        return current

    def leave(self, leaving: Mask, solutions: Float64) -> Mask:
        """Store the solutions of columns that are not iterated further; return all that left."""
        left = np.zeros(solutions.shape[1], bool)
        if leaving.any():
            left[self.numbers[leaving]] = True
            solutions[:, self.numbers[leaving]] = self.solutions[:, leaving]
            for name, values in vars(self).items():
                setattr(self, name, values[..., ~leaving])
        return left


def _norms_of_any_size(V: Float64) -> Vector:
    """Return the norms of columns, also of those whose squares are too small for float64."""
    norms = column_norms(V)
    small = norms < _SMALLEST_NORM
    if small.any():
        scaled, exponents = near_one(V[:, small])
        norms[small] = np.ldexp(column_norms(scaled), exponents)
    return norms


def _is_positive(values: Vector) -> Mask:
    return np.isfinite(values) & (values > 0.0)


def _as_preconditioner(preconditioner: Any, size: int) -> BlockFunction:
    """Return the function that applies the approximate inverse to (n, t) vectors."""
    if preconditioner is None:
        return np.copy
    if callable(preconditioner) and not isinstance(preconditioner, LinearOperator):
        return lambda V: _checked_image(preconditioner(V), V)
    operator = as_operator("preconditioner", preconditioner)
    if operator.shape != (size, size):
        raise InputError(
            f"the preconditioner has shape {operator.shape}; allowed is that of the operator, "
            f"{(size, size)}: an approximate inverse of it."
        )
    return lambda V: _checked_image(operator.matmat(V), V)


def _checked_image(image: Any, V: Float64) -> Float64:
    values = np.asarray(image, dtype=np.float64)
    if values.shape != V.shape:
        raise InputError(
            f"the preconditioner turned vectors of shape {V.shape} into {values.shape}; allowed "
            "is the same shape: it gets a column for every right-hand side that is iterated."
        )
    return values


@documented
def preconditioned_gradient(
    operator: Any,
    b: ArrayLike,
    R: Any,
    *,
    tol: float = 1e-6,
    max_iterations: int | None = None,
    step: float | str = "auto",
    x0: ArrayLike | None = None,
    callback: Callback | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> SolverResult:
    r"""Solve A x = b by the gradient steps of [SWYZ21], Algorithm 2.

    With :math:`B = R^\top A R` and :math:`x = R z`, every step is
    :math:`z \leftarrow z - \eta B^\top (B z - R^\top b)`. It converges for
    :math:`\eta < 2 / \lambda_{\max}(B)^2`, and then in a number of steps that grows with the
    logarithm of the condition number of A, if that of B is bounded.

    Parameters
    ----------
    operator : LinearOperator, sparse matrix or array of shape (n, n)
        The matrix A, symmetric and positive definite.
    b : array-like of shape (n,) or (n, t)
        Right-hand sides, finite real numbers. They are left as they are, as all arguments.
    R : LinearOperator or array of shape (n, n)
        What makes B well conditioned, with products with its transpose: for A = Wᵀ W and a sketch
        S W = Q U with orthonormal Q, the inverse of U, which :class:`TriangularFactor` applies.
    tol, x0, callback
        As for :func:`conjugate_gradients`.
    max_iterations : int, default=None
        At least 1. None is 10,000.
    step : {"auto", "paper"} or float, default="auto"
        The step η. "auto" is 2 / (λ_max² + λ_min²), with eigenvalues of B estimated by 30 steps of
        Lanczos's method. "paper" is the step of 1 as printed: it needs λ_max < √2, which sketches
        of a practical size do not give; the result then says that it diverged.
    random_state : int, RandomState or None, default=None
        Seed of the vector that Lanczos's method starts with.
    %(verbose)s

    Returns
    -------
    SolverResult
        Also where the tolerance was not reached, as :func:`conjugate_gradients` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.linalg import TriangularFactor, preconditioned_gradient
    >>> W = np.vander(np.linspace(0.0, 1.0, 40), 6)
    >>> R = TriangularFactor.of_rows(1.4 * W[::2])
    >>> result = preconditioned_gradient(W.T @ W, np.ones(6), R, random_state=0)
    >>> result.converged, result.iterations < 100
    (True, True)
    >>> preconditioned_gradient(W.T @ W, np.ones(6), R, step="paper").converged
    False
    """
    tol, verbose = checked_tolerance(tol), checked_verbose(verbose)
    limit = _MOST_ITERATIONS
    if max_iterations is not None:
        limit = checked_integer("max_iterations", max_iterations, 1)
    if isinstance(step, str):
        one_of("step", step, ("auto", "paper"))
    else:
        step = checked_positive("step", step)
    system = LinearSystem.checked(operator, b, x0)
    factor = _checked_factor(R, system.right.shape[0])
    streams = RandomStreams(seed_from(random_state), "gradient")
    low, high = _eigenvalues_of_product(system, factor, streams)
    length = _step_length(step, low, high)
    log = IterationLog("gradient", limit, callback, verbose)
    cycle = _Descent(factor, length, length * high**2 < 2.0)
    failure = (
        f"the step {length:.3g} diverges, as it has to be below 2 / λ_max(B)² = "
        f"{2.0 / high**2:.3g}: use step='auto', or a sketch of more rows"
    )
    return refine(system, cycle, tol, log, preconditioner=R, failure=failure)


@dataclass(frozen=True, eq=False)
class _Descent:
    """A cycle of gradient steps on ‖B z − Rᵀ b‖², B = Rᵀ A R."""

    factor: Any
    length: float
    stable: bool

    def __call__(
        self, product: Product, right: Float64, goal: float, log: IterationLog
    ) -> tuple[Float64, Mask]:
        # Residuals are no recursion here: rounding errors show in steps that do not descend, and
        # the precision of the products is of no interest.
        solutions, broken = np.zeros_like(right), np.zeros(right.shape[1], bool)
        numbers = np.arange(right.shape[1])
        z = np.zeros((self.factor.shape[1], numbers.size))
        # What is descended along: minus (B z − Rᵀ b).
        slopes = self.factor.rmatmat(right)
        least, idle = column_norms(slopes), np.zeros(numbers.size, int)
        while numbers.size and log.remaining:
            z += self.length * self.factor.rmatmat(product.multiply(self.factor.matmat(slopes)))
            x = self.factor.matmat(z)
            residuals = right - product.multiply(x)
            slopes = self.factor.rmatmat(residuals)
            norms, sizes = column_norms(residuals), column_norms(slopes)
            log.record(numbers, norms)
            # Every step lowers ‖B z − Rᵀ b‖, unless it is too long or rounding errors are left.
            idle = np.where(sizes < least, 0, idle + 1)
            least = np.minimum(least, sizes)
            lost = (idle >= _IDLE_STEPS) | (sizes > _GROWTH_OF_DIVERGENCE * least)
            solutions[:, numbers] = x
            broken[numbers] = lost & (not self.stable)
            staying = ~lost & (norms > goal)
            if not staying.all():
                numbers, least, idle = numbers[staying], least[staying], idle[staying]
                z, right, slopes = z[:, staying], right[:, staying], slopes[:, staying]
        return solutions, broken


def _eigenvalues_of_product(
    system: LinearSystem, factor: Any, streams: RandomStreams
) -> tuple[float, float]:
    """Return the extreme Ritz values of B = Rᵀ A R, which lie between its eigenvalues."""

    def product(vector: Float64) -> Float64:
        column = vector[:, np.newaxis]
        image: Float64 = factor.rmatmat(system.operator.matmat(factor.matmat(column)))
        return image[:, 0]

    start = streams.normal("start", factor.shape[1])
    values = ritz_values(product, start, _PRODUCTS_FOR_EIGENVALUES)
    low, high = float(values[0]), float(values[-1])
    if not (np.isfinite(high) and high > 0.0):
        raise np.linalg.LinAlgError(
            f"the largest eigenvalue of Rᵀ A R is {high:.3g}; it has to be finite and above 0: "
            "the operator A must be positive definite and R regular."
        )
    return max(low, 0.0), high


def _step_length(step: float | str, low: float, high: float) -> float:
    if isinstance(step, str):
        return 1.0 if step == "paper" else 2.0 / ((_MARGIN * high) ** 2 + low**2)
    return step


def _checked_factor(R: Any, size: int) -> Any:
    factor = as_operator("R", R)
    if factor.shape[0] != size:
        raise InputError(
            f"R has shape {factor.shape}; allowed is ({size}, {size}), as the operator has that "
            "many rows."
        )
    return factor
