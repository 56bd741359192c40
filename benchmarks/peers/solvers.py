"""Other ways to solve a kernel system whose matrix is given."""

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import cg

PIVOTS = (15, 500)
"""Ranks of GPyTorch's preconditioner: its default, and one for harder systems."""

Solver = Callable[[np.ndarray, float, np.ndarray, float], np.ndarray]
"""Called with K + alpha I, alpha, the right-hand side and a tolerance, it gives the solution."""


def peer_solvers() -> dict[str, Solver]:
    """Return the solvers by name, those of GPyTorch where it is installed."""
    found: dict[str, Solver] = {"Cholesky (SciPy)": cholesky, "plain CG (SciPy)": plain_cg}
    if importlib.util.find_spec("gpytorch"):
        for rank in PIVOTS:
            found[f"CG with {rank} pivots (GPyTorch)"] = partial(pivoted_cholesky_cg, rank)
    return found


def cholesky(matrix: np.ndarray, alpha: float, y: np.ndarray, tol: float) -> np.ndarray:
    del alpha, tol
    factor = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
    return scipy.linalg.cho_solve(factor, y, check_finite=False)


def plain_cg(matrix: np.ndarray, alpha: float, y: np.ndarray, tol: float) -> np.ndarray:
    del alpha
    return cg(matrix, y, rtol=tol, maxiter=len(y))[0]


def pivoted_cholesky_cg(
    rank: int, matrix: np.ndarray, alpha: float, y: np.ndarray, tol: float
) -> np.ndarray:
    """Solve by conjugate gradients, preconditioned by a partial Cholesky factor of K."""
    import torch
    from linear_operator import to_linear_operator

    K = torch.from_numpy(matrix).clone()
    K.diagonal().sub_(alpha)
    system = to_linear_operator(K).add_diagonal(torch.full((len(y),), alpha, dtype=K.dtype))
    with _settings(rank, tol, len(y)), torch.no_grad():
        return system.solve(torch.from_numpy(y)[:, None])[:, 0].numpy()


@contextmanager
def _settings(rank: int, tol: float, most_iterations: int) -> Iterator[None]:
    """Let GPyTorch precondition systems of any size, and neither factor nor stop early."""
    from linear_operator import settings

    with ExitStack() as stack:
        for setting in (
            settings.max_preconditioner_size(rank),
            settings.min_preconditioning_size(1),
            settings.max_cholesky_size(1),
            settings.cg_tolerance(tol),
            settings.max_cg_iterations(most_iterations),
        ):
            stack.enter_context(setting)
        # A residual that is not reached shows in the table.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
