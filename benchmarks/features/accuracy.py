"""Error of the Gaussian, neural and series maps against the exact kernel and other features."""

from functools import partial

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler

from benchmarks.data import digits, unit_rows
from benchmarks.errors import Maker, mean_errors, usual_seeds
from benchmarks.peers.features import (
    GradientFeatures,
    OrthogonalRandomFeatures,
    RandomReluFeatures,
    RandomTangentFeatures,
)
from benchmarks.report import Bar, Row, Table, at_most
from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
)
from powersketch.kernels import ArcCosine, DotProduct, Gaussian, NeuralTangent

ROWS = 800
RBF_SAMPLER_BARS = {1e-4: 15, 5e-4: 2.3, 2e-3: 0.97, 1e-2: 0.97}  # by gamma
METHODS = ("power", "single_power", "fourier")
SEEDS_NOTE = "mean of 3 seeds (quick: 1)"


def gaussian_on_digits(*, quick: bool) -> Table:
    X = digits(ROWS)
    table = Table(
        f"Gaussian kernel: relative error on {ROWS} digits rows",
        f"1024 components, {SEEDS_NOTE}. Nystroem depends on the data: with as many components as "
        "rows it is exact, and it has half as many here. Bars are for auto.",
    )
    for gamma in RBF_SAMPLER_BARS:
        K = Gaussian(gamma)(X)
        found = mean_errors(_gaussian_makers(gamma), X, K, 1024, seeds=usual_seeds(quick))
        cells = {"gamma": gamma, "mean of K": float(K.mean()), **found}
        table.rows.append(Row(cells, _gaussian_bars(gamma, found)))
    return table


def _gaussian_makers(gamma: float) -> dict[str, Maker]:
    ours = {method: partial(GaussianSketch, gamma, method=method) for method in (*METHODS, "auto")}
    return {
        "RBFSampler": partial(RBFSampler, gamma=gamma),
        "orthogonal": partial(OrthogonalRandomFeatures, gamma),
        f"Nystroem, {ROWS // 2}": partial(_nystroem, gamma),
        **ours,
    }


def _nystroem(gamma: float, n_components: int, random_state: int) -> Nystroem:
    size = min(n_components, ROWS // 2)
    return Nystroem(gamma=gamma, n_components=size, random_state=random_state)


def _gaussian_bars(gamma: float, found: dict[str, float]) -> list[Bar]:
    best = min(found[method] for method in METHODS)
    return [
        times_better(found, "RBFSampler", "auto", RBF_SAMPLER_BARS[gamma]),
        times_better(found, "orthogonal", "auto", 0.95),
        Bar("≤ 1.05 × best method", found["auto"] <= 1.05 * best),
    ]


def times_better(found: dict[str, float], peer: str, ours: str, times: float) -> Bar:
    return Bar(f"{peer} / {ours} ≥ {times:g}", found[peer] >= times * found[ours])


def tangent_kernels_of_one_layer(*, quick: bool) -> Table:
    X = unit_rows(digits(ROWS))
    table = Table(
        f"Neural tangent kernels of one hidden layer: relative error on {ROWS} digits rows",
        f"Rows of unit norm, {SEEDS_NOTE}. The paper's kernel ½ t κ₀(t) trains the hidden layer. "
        "Gradients are those of a random network, of so few neurons that they have the size asked "
        "for, or of as many as components and count-sketched.",
    )
    for name, train_output in {"½ t κ₀(t)": False, "both layers trained": True}.items():
        K, makers = NeuralTangent(1, train_output)(X), _tangent_makers(train_output)
        for size in (512, 2048):
            found = mean_errors(makers, X, K, size, seeds=usual_seeds(quick))
            bars = [] if train_output else _tangent_bars(size, found)
            table.rows.append(Row({"kernel": name, "components": size, **found}, bars))
    return table


def _tangent_makers(train_output: bool) -> dict[str, Maker]:
    return {
        "powersketch": partial(NeuralTangentSketch, 1, train_output=train_output),
        "powersketch, random": partial(
            NeuralTangentSketch, 1, train_output=train_output, method="random"
        ),
        "sketched gradients": partial(RandomTangentFeatures, train_output),
        "gradients": partial(GradientFeatures, train_output),
    }


def _tangent_bars(size: int, found: dict[str, float]) -> list[Bar]:
    peers = ("sketched gradients", "gradients")
    bars = [times_better(found, peer, "powersketch", 2.5) for peer in peers]
    return [*bars, at_most(found["powersketch"], 0.020)] if size == 2048 else bars


def deep_tangent_kernel(*, quick: bool) -> Table:
    X = unit_rows(digits(ROWS))
    options = {
        "whole (default)": {},
        "layers": {"composition": "layers"},
        "random": {"method": "random"},
    }
    makers = {name: partial(NeuralTangentSketch, 3, **more) for name, more in options.items()}
    table = Table(
        f"Neural tangent kernel of depth 3: relative error on {ROWS} digits rows by composition",
        f"All layers trained, rows of unit norm, {SEEDS_NOTE}. Whole: one series for the network; "
        "layers: one for every layer; random: gradients of a random network, sketched.",
    )
    K = NeuralTangent(3)(X)
    for size in (1024, 4096):
        found = mean_errors(makers, X, K, size, seeds=usual_seeds(quick))
        bars = [at_most(found["whole (default)"], 0.016)] if size == 4096 else []
        table.rows.append(Row({"components": size, **found}, bars))
    return table


def series_of_the_inner_product(*, quick: bool) -> Table:
    X = unit_rows(digits(ROWS))
    cases = {
        "exp(t), callable": (np.exp, [0.01]),
        "exp(t), by name": ("exp", []),
        "1 / (2 − t), callable": (lambda t: 1 / (2 - t), []),
        "arcsin(t), by name": ("arcsin", []),
    }
    table = Table(
        f"Series of the inner product: relative error on {ROWS} digits rows",
        f"Rows of unit norm, 1024 components, {SEEDS_NOTE}.",
    )
    for name, (series, limits) in cases.items():
        makers = {
            tail: partial(DotProductSketch, series, tail=tail) for tail in ("truncate", "fit")
        }
        found = mean_errors(makers, X, DotProduct(series)(X), 1024, seeds=usual_seeds(quick))
        bars = [at_most(found["truncate"], limit) for limit in limits]
        table.rows.append(Row({"kernel": name, **found}, bars))
    return table


def arc_cosine_kernels(*, quick: bool) -> Table:
    X = unit_rows(digits(ROWS))
    table = Table(
        f"Arc-cosine kernels: relative error on {ROWS} digits rows",
        f"Rows of unit norm, 1024 components, {SEEDS_NOTE}.",
    )
    for order in (0, 1, 2):
        makers = {
            "powersketch": partial(ArcCosineSketch, order),
            "powersketch, random": partial(ArcCosineSketch, order, method="random"),
            "random ReLU": partial(RandomReluFeatures, order),
        }
        found = mean_errors(makers, X, ArcCosine(order)(X), 1024, seeds=usual_seeds(quick))
        bars = [times_better(found, "random ReLU", "powersketch", 1)]
        table.rows.append(Row({"order": order, **found}, bars))
    return table


MEASUREMENTS = (
    gaussian_on_digits,
    tangent_kernels_of_one_layer,
    deep_tangent_kernel,
    series_of_the_inner_product,
    arc_cosine_kernels,
)
