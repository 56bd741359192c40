"""Speed of the Gaussian kernel's features against scikit-learn's RBFSampler."""

from functools import partial

import numpy as np
from report import Row, Table, at_least
from sklearn.kernel_approximation import RBFSampler
from timing import best_seconds

from powersketch import GaussianSketch

ROWS, COLUMNS, COMPONENTS = 10_000, 1024, 4096
METHODS = ("auto", "power", "single_power", "fourier")
TIMES_FASTER = 3


def gaussian_transform_against_rbf_sampler(*, quick: bool) -> Table:
    X = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    options = {"gamma": "scale", "n_components": COMPONENTS, "random_state": 0}
    peer = RBFSampler(**options).fit(X)
    maps = {method: GaussianSketch(**options, method=method).fit(X) for method in METHODS}
    calls = {method: partial(sketch.transform, X) for method, sketch in maps.items()}
    calls["peer"] = partial(peer.transform, X)
    seconds = best_seconds(calls, rounds=2 if quick else 5)
    return Table(
        "Gaussian features against scikit-learn's RBFSampler",
        f"{ROWS} standard normal rows, {COLUMNS} columns, {COMPONENTS} components, gamma='scale', "
        "float32, one thread each. The bar is for the default.",
        [_method_row(maps[method], seconds[method], seconds["peer"]) for method in METHODS],
    )


def _method_row(sketch: GaussianSketch, seconds: float, peer_seconds: float) -> Row:
    ratio = peer_seconds / seconds
    cells = {
        "method": sketch.method,
        "chosen": sketch.method_,
        "powersketch ms": 1e3 * seconds,
        "RBFSampler ms": 1e3 * peer_seconds,
        "times faster": ratio,
    }
    return Row(cells, [at_least(ratio, TIMES_FASTER)] if sketch.method == "auto" else [])


MEASUREMENTS = (gaussian_transform_against_rbf_sampler,)
