"""What a solver found, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.exceptions import ConvergenceWarning

from powersketch.exceptions import warn_user
from powersketch.linalg.panels import Float64


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
        ‖b − A x‖ / ‖b‖, computed from x and not by recursion, of the worst column.
    residuals : ndarray of shape (t,)
        The same for every column.
    history : ndarray of shape (iterations + 1,)
        The worst relative residual before the first step and after every one. The solver's
        recursion gives them, but for the last, which is `residual`.
    message : str
        The outcome in words, with advice where the solver failed.
    operator, preconditioner : str
        What A was, and what approximated its inverse.
    residual_interval : tuple of two floats or None
        Where `residual` is an estimate, the limits it lies between; None where it is exact.
    """

    x: Float64
    converged: bool
    iterations: int
    residual: float
    residuals: Float64
    history: Float64
    message: str
    operator: str
    preconditioner: str
    residual_interval: tuple[float, float] | None = None

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
    """Issue scikit-learn's ConvergenceWarning with the message of a result that failed.

    Parameters
    ----------
    result : SolverResult
        Nothing is done where it has converged.
    """
    if not result.converged:
        warn_user(result.message, ConvergenceWarning)
