"""A kernel system and how it is to be solved, after all checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.kernel_systems.preconditioner import SketchPreconditioner
from powersketch.kernels import Kernel
from powersketch.random_streams import RandomStreams

# On images, leverage scores save a twentieth of the steps and cost more time than all of them.
_LANDMARKS = "uniform"


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """(K + alpha I) x = y for the kernel matrix K of the rows of X."""

    X: Rows
    y: NDArray[np.float64]
    kernel: Kernel
    alpha: float
    tol: float
    max_iterations: int | None
    n_components: int | None
    memory_budget: int | None
    callback: Callable[[int, float], object] | None
    seed: int
    n_jobs: int | None
    verbose: int

    @property
    def rows(self) -> int:
        """The number of equations."""
        return int(self.X.shape[0])

    @property
    def streams(self) -> RandomStreams:
        """Where random numbers come from."""
        return RandomStreams(self.seed, "solve_kernel_system")

    @property
    def solver_options(self) -> dict[str, Any]:
        """What every iteration is given."""
        return {
            "tol": self.tol,
            "max_iterations": self.max_iterations,
            "callback": self.callback,
            "verbose": self.verbose,
        }

    def sketched(self, strategy: str, matrix: NDArray[Any] | None = None) -> SketchPreconditioner:
        """Return the preconditioner of a strategy, of the size that was asked for.

        The matrix serves the strategy "nystroem", and no other.
        """
        own: dict[str, Any] = (
            {"landmarks": _LANDMARKS, "matrix": matrix} if strategy == "nystroem" else {}
        )
        return SketchPreconditioner(
            self.X,
            self.kernel,
            self.alpha,
            strategy=strategy,
            n_components=self.n_components,
            **own,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
