"""Error against the number of features for three kernels on three data sets, with pictures."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler

from benchmarks.data import digits, fashion_mnist, low_rank_rows, unit_rows
from benchmarks.errors import Maker, mean_errors, usual_seeds
from benchmarks.figures import Curve, error_figure
from benchmarks.peers.features import (
    KernelNystroem,
    OrthogonalRandomFeatures,
    RandomReluFeatures,
    RandomTangentFeatures,
)
from benchmarks.report import Row, Table
from powersketch import ArcCosineSketch, GaussianSketch, NeuralTangentSketch
from powersketch.kernels import ArcCosine, Gaussian, Kernel, NeuralTangent

ROWS = 1000
SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
QUICK_SIZES = (64, 256, 1024)
OURS, NYSTROEM = "powersketch", "Nyström"

Contest = tuple[Kernel, dict[str, Maker]]
"""The exact kernel and the maps that approximate it."""


def gaussian_kernel(*, quick: bool) -> Table:
    return _measured_table(
        "gaussian", "Gaussian kernel, gamma = 1 / (columns · variance)", _gaussian, quick=quick
    )


def neural_tangent_kernel(*, quick: bool) -> Table:
    return _measured_table(
        "neural_tangent", "Neural tangent kernel ½ t κ₀(t)", _neural_tangent, quick=quick
    )


def arc_cosine_kernel(*, quick: bool) -> Table:
    return _measured_table("arc_cosine", "Arc-cosine kernel of order 1", _arc_cosine, quick=quick)


def _gaussian(X: np.ndarray) -> Contest:
    gamma = 1 / (X.shape[1] * float(X.var()))
    return Gaussian(gamma), {
        OURS: partial(GaussianSketch, gamma),
        "RBFSampler": partial(RBFSampler, gamma=gamma),
        "orthogonal random features": partial(OrthogonalRandomFeatures, gamma),
        NYSTROEM: partial(Nystroem, gamma=gamma),
    }


def _neural_tangent(X: np.ndarray) -> Contest:
    del X
    kernel = NeuralTangent(train_output=False)
    return kernel, {
        OURS: partial(NeuralTangentSketch, train_output=False),
        "random tangent features": RandomTangentFeatures,
        NYSTROEM: partial(KernelNystroem, kernel),
    }


def _arc_cosine(X: np.ndarray) -> Contest:
    del X
    kernel = ArcCosine(1)
    return kernel, {
        OURS: partial(ArcCosineSketch, 1),
        "random ReLU features": partial(RandomReluFeatures, 1),
        NYSTROEM: partial(KernelNystroem, kernel),
    }


def data_sets() -> dict[str, np.ndarray]:
    return {
        "digits, 64 columns": unit_rows(digits(ROWS)),
        "Fashion-MNIST, 784 columns": unit_rows(fashion_mnist("t10k")[0][:ROWS]),
        "synthetic, 10000 columns": low_rank_rows(ROWS, 10_000),
    }


def _measured_table(
    name: str, title: str, contest: Callable[[np.ndarray], Contest], *, quick: bool
) -> Table:
    panels = {data: _curves(X, contest(X), quick=quick) for data, X in data_sets().items()}
    return Table(
        f"{title}: error against the number of features",
        f"Relative error (Frobenius) on {ROWS} rows of norm one, mean of 3 seeds (quick: 1). The "
        "Nyström method depends on the data and is exact where it has as many components as rows.",
        [row for data, curves in panels.items() for row in _table_rows(data, curves)],
        figure=error_figure(name, title, panels, ours=OURS, from_data=NYSTROEM),
    )


def _curves(X: np.ndarray, contest: Contest, *, quick: bool) -> dict[str, Curve]:
    kernel, makers = contest
    K = kernel(X)
    curves: dict[str, dict[int, float]] = {name: {} for name in makers}
    for size in QUICK_SIZES if quick else SIZES:
        measured = {name: make for name, make in makers.items() if name != NYSTROEM or size < ROWS}
        for name, error in mean_errors(measured, X, K, size, seeds=usual_seeds(quick)).items():
            curves[name][size] = error
    return curves


def _table_rows(data: str, curves: Mapping[str, Curve]) -> list[Row]:
    sizes = curves[OURS]
    return [
        Row(
            {
                "data": data,
                "features": size,
                **{name: curve.get(size, "exact") for name, curve in curves.items()},
            }
        )
        for size in sizes
    ]


MEASUREMENTS = (gaussian_kernel, neural_tangent_kernel, arc_cosine_kernel)
