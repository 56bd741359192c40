"""Objectives of row-sketched kernel ridge regression relative to their minimum, over many seeds."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.datasets import load_digits

from benchmarks.data import digits, fashion_mnist
from benchmarks.report import Row, Table, at_least
from benchmarks.ridge.problems import diamonds_problem
from powersketch import SketchedKernelRidge
from powersketch.kernel_ridge import CoarseSketchWarning
from powersketch.kernels import Gaussian, Kernel, Polynomial

ACCURACIES = (0.1, 0.5)
RELATIVE_ALPHA = 1e-3


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """Rows, targets, the kernel, and alpha."""

    X: np.ndarray
    y: np.ndarray
    kernel: Kernel

    @property
    def alpha(self) -> float:
        return RELATIVE_ALPHA * float(self.kernel.diagonal(self.X).sum())

    def ratio(self, model: SketchedKernelRidge, K: np.ndarray, least: float) -> float:
        """Return ‖K x − y‖² + alpha xᵀ K x, y without the intercept, relative to its minimum."""
        x = model.dual_coef_
        residual = K @ x - (self.y - model.intercept_)
        return float(residual @ residual + self.alpha * x @ K @ x) / least

    def least_objective(self, K: np.ndarray) -> float:
        """Return alpha yᵀ (K + alpha I)⁻¹ y, y without its mean."""
        y = self.y - self.y.mean()
        matrix = K + self.alpha * np.eye(len(y))
        return float(self.alpha * y @ scipy.linalg.solve(matrix, y, assume_a="pos"))


def row_sketch_objectives(*, quick: bool) -> Table:
    rows, components, seeds = (300, 1024, 5) if quick else (1000, 8192, 100)
    return Table(
        "Row sketch: objective relative to its minimum",
        f"{rows} rows, {components} components, alpha = {RELATIVE_ALPHA:g} × trace of K, {seeds} "
        "seeds. The exact kernel's objective may be 1 + ε times its minimum; where it is more, a "
        "warning has to say that the features are too coarse for this alpha.",
        [
            _measured_row(name, problem, components, eps, seeds)
            for name, problem in _problems(rows).items()
            for eps in ACCURACIES
        ],
    )


def _problems(rows: int) -> dict[str, RidgeProblem]:
    images, labels = (part[:rows] for part in fashion_mnist("train"))
    stones = diamonds_problem().first(rows)
    numbers = digits(rows) / 16
    scale = 1 / float(np.mean(np.sum(numbers**2, axis=1)))
    return {
        "digits, polynomial of degree 4": RidgeProblem(
            numbers,
            load_digits().target[:rows].astype(np.float64),
            Polynomial(4, gamma=scale, coef0=1.0),
        ),
        "diamonds, Gaussian": RidgeProblem(
            stones.X.astype(np.float64),
            stones.y.astype(np.float64),
            Gaussian(stones.gamma),
        ),
        "Fashion-MNIST, Gaussian": RidgeProblem(
            images.astype(np.float64),
            labels.astype(np.float64),
            Gaussian(0.01),
        ),
    }


def _measured_row(name: str, problem: RidgeProblem, components: int, eps: float, seeds: int) -> Row:
    K = problem.kernel(problem.X)
    least = problem.least_objective(K)
    ratios, warned, sizes = np.empty(seeds), np.zeros(seeds, bool), np.empty(seeds)
    for seed in range(seeds):
        model, warned[seed] = _fitted(problem, components, eps, seed)
        ratios[seed], sizes[seed] = problem.ratio(model, K, least), model.row_sketch_.rows
    within = int(np.sum(ratios <= 1 + eps))
    right = int(np.sum((ratios <= 1 + eps) | warned))
    cells = {
        "data and kernel": name,
        "ε": f"{eps:g}",
        "statistical dimension": model.row_sketch_.statistical_dimension,
        "rows of S": float(np.mean(sizes)),
        "median ratio": float(np.median(ratios)),
        "95 % of seeds below": float(np.quantile(ratios, 0.95)),
        "≤ 1 + ε": f"{within} of {seeds}",
        "or warned": f"{right} of {seeds}",
    }
    return Row(cells, [at_least(100 * right / seeds, 95)])


def _fitted(
    problem: RidgeProblem, components: int, eps: float, seed: int
) -> tuple[SketchedKernelRidge, bool]:
    """Return the model, and whether it warned that its features are too coarse."""
    model = SketchedKernelRidge(
        problem.kernel,
        features="row-sketch",
        alpha=problem.alpha,
        eps=eps,
        n_components=components,
        random_state=seed,
        n_jobs=-1,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(problem.X, problem.y)
    return model, any(issubclass(warning.category, CoarseSketchWarning) for warning in caught)


MEASUREMENTS = (row_sketch_objectives,)
