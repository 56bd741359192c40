"""Speed of transform against scikit-learn, against its degree and with two threads."""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler

from benchmarks.data import normal_rows, sparse_rows, uniform_rows
from benchmarks.report import Row, Table, at_least, at_most
from benchmarks.timing import best_seconds, usual_rounds
from powersketch import GaussianSketch, NeuralTangentSketch, PolynomialSketch, routines
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, SRHT

GAUSSIAN_SHAPE, GAUSSIAN_COMPONENTS = (10_000, 1024), 4096
GAUSSIAN_METHODS = ("auto", "power", "single_power", "fourier")
GAUSSIAN_TIMES_FASTER = 3
SPARSE_BASES = ("osnap", "countsketch", "srht")


def transform_against_scikit_learn(*, quick: bool) -> Table:
    table = Table(
        "Transform against scikit-learn's PolynomialCountSketch",
        "4096 rows of unit norm, 1024 columns, 1024 components, float32, one thread. "
        "The peer's time does not depend on the values: one run of it serves all rows.",
    )
    for degree, bar, rounds in ((4, 30, 7), (32, 100, 3)):
        table.rows.extend(_transform_rows(degree, bar, 1 if quick else rounds))
    return table


def _transform_rows(degree: int, bar: float, rounds: int) -> list[Row]:
    centred, uncentred = normal_rows(4096, 1024), uniform_rows(4096, 1024)
    cases = {
        "standard normal": (centred, "auto"),
        "uniform on [0, 1]": (uncentred, "auto"),
        "uniform on [0, 1], expanded": (uncentred, "mean"),
    }
    options = {"degree": degree, "n_components": 1024, "random_state": 0}
    peer = PolynomialCountSketch(**options).fit(centred)
    calls, maps = {"peer": lambda: peer.transform(centred)}, {}
    for name, (X, expansion) in cases.items():
        maps[name] = PolynomialSketch(**options, expansion=expansion).fit(X)
        calls[name] = partial(maps[name].transform, X)
    seconds = best_seconds(calls, rounds=rounds)
    return [_peer_row(name, maps[name], seconds[name], seconds["peer"], bar) for name in cases]


def _peer_row(
    name: str, sketch: PolynomialSketch, seconds: float, peer_seconds: float, bar: float
) -> Row:
    cells = {
        "data": name,
        "degree": sketch.degree,
        "expansion": sketch.expansion_,
        "powersketch ms": 1e3 * seconds,
        "scikit-learn ms": 1e3 * peer_seconds,
        "times faster": peer_seconds / seconds,
    }
    return Row(cells, [at_least(peer_seconds / seconds, bar)])


def transform_against_its_degree(*, quick: bool) -> Table:
    X = normal_rows(1024, 16384)
    copy = np.zeros_like(X)
    options = {"n_components": 1024, "random_state": 0}
    low, high = (PolynomialSketch(degree, **options).fit(X) for degree in (2, 1024))
    calls = {
        "degree 2": lambda: low.transform(X),
        "degree 1024": lambda: high.transform(X),
        "copy of the input": lambda: np.copyto(copy, X),
    }
    seconds = best_seconds(calls, rounds=usual_rounds(quick))
    return Table(
        "Transform of long rows against its degree and against copying the input",
        "1024 rows, 16384 columns, 1024 components, standard normal, float32, one thread.",
        [
            _time_ratio("degree 1024", "degree 2", seconds, 2.5),
            _time_ratio("degree 2", "copy of the input", seconds, 6),
        ],
    )


def _time_ratio(name: str, reference: str, seconds: dict[str, float], limit: float) -> Row:
    ratio = seconds[name] / seconds[reference]
    cells = {
        "time of": name,
        "over": reference,
        "ms": 1e3 * seconds[name],
        "over ms": 1e3 * seconds[reference],
        "ratio": ratio,
    }
    return Row(cells, [at_most(ratio, limit)])


def two_threads_against_one(*, quick: bool) -> Table:
    short_rows, long_rows = normal_rows(8192, 1024), normal_rows(4096, 4096)
    sketch = PolynomialSketch(4, n_components=1024, random_state=0).fit(short_rows)
    spec = SRHT.draw(RandomStreams(0, "benchmark"), 4096, 1024).spec
    out = np.zeros((len(short_rows), 1024), dtype=np.float32)
    work = {
        "transform": lambda n: sketch.set_params(n_jobs=n).transform(short_rows),
        "transform_into": lambda n: sketch.set_params(n_jobs=n).transform_into(short_rows, out),
        "SRHT": lambda n: routines.srht(long_rows, spec, threads=n),
        "two SHA-256 sums": _two_checksums,
    }
    bars = {"transform_into": 1.7, "SRHT": 1.7} if (os.cpu_count() or 1) > 1 else {}
    return Table(
        "Two threads against one",
        "float32; transform: 8192 × 1024, 1024 components, degree 4; SRHT: 4096 × 4096 to 1024. "
        "transform_into writes into memory that is there already, transform "
        "has to fetch it. The last row shows how much of a second core was free.",
        [
            _threads_row(name, call, bars.get(name), usual_rounds(quick))
            for name, call in work.items()
        ],
    )


def _two_checksums(threads: int) -> None:
    """Compute two checksums, which share neither memory traffic nor Python's lock."""
    block = bytes(8 << 20)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(hashlib.sha256, [block, block]))


def _threads_row(name: str, call: Callable[[int], Any], bar: float | None, rounds: int) -> Row:
    seconds = best_seconds({"one": lambda: call(1), "two": lambda: call(2)}, rounds=rounds)
    ratio = seconds["one"] / seconds["two"]
    cells = {
        "work": name,
        "one thread ms": 1e3 * seconds["one"],
        "two threads ms": 1e3 * seconds["two"],
        "times faster": ratio,
    }
    return Row(cells, [at_least(ratio, bar)] if bar else [])


def sparse_rows_against_scikit_learn(*, quick: bool) -> Table:
    columns, peer_columns = 1 << 17, 1 << (10 if quick else 12)
    X = sparse_rows(1024, columns, 0.01)
    part = X[:, :peer_columns].tocsr()
    options = {"degree": 2, "n_components": 1024, "random_state": 0}
    theirs = PolynomialCountSketch(**options).fit(part)
    calls = {"peer": lambda: theirs.transform(part)}
    for base in SPARSE_BASES:
        T = BASE_SKETCHES[base].draw(RandomStreams(0, "benchmark"), columns, 1024)
        sketch = PolynomialSketch(**options, base_sketch=base).fit(X)
        calls[f"{base} alone"] = partial(T.apply, X)
        calls[base] = partial(sketch.transform, X)
    seconds = best_seconds(calls, rounds=1 if quick else 3)
    peer = 1e9 * seconds.pop("peer") / part.nnz
    return Table(
        "Transform of sparse rows",
        f"Nanoseconds per non-zero. 1024 rows, {columns} columns, 1 % non-zero, degree 2, 1024 "
        f"components, float32, one thread. scikit-learn gets the first {peer_columns} columns: "
        "its time is proportional to them.",
        _sparse_table_rows({name: 1e9 * s / X.nnz for name, s in seconds.items()}, peer),
    )


def _sparse_table_rows(nanoseconds: dict[str, float], peer: float) -> list[Row]:
    return [
        Row(
            {
                "base sketch": base,
                "base sketch alone": nanoseconds[f"{base} alone"],
                "transform": nanoseconds[base],
                "scikit-learn": peer,
                "times faster": peer / nanoseconds[base],
            }
        )
        for base in SPARSE_BASES
    ]


def gaussian_transform_against_rbf_sampler(*, quick: bool) -> Table:
    X = np.random.default_rng(0).standard_normal(GAUSSIAN_SHAPE, dtype=np.float32)
    options = {"gamma": "scale", "n_components": GAUSSIAN_COMPONENTS, "random_state": 0}
    peer = RBFSampler(**options).fit(X)
    maps = {method: GaussianSketch(**options, method=method).fit(X) for method in GAUSSIAN_METHODS}
    calls = {method: partial(sketch.transform, X) for method, sketch in maps.items()}
    calls["peer"] = partial(peer.transform, X)
    seconds = best_seconds(calls, rounds=2 if quick else 5)
    return Table(
        "Gaussian features against scikit-learn's RBFSampler",
        f"Standard normal rows, {' × '.join(map(str, GAUSSIAN_SHAPE))}, {GAUSSIAN_COMPONENTS} "
        "components, gamma='scale', float32, one thread each. The bar is for the default.",
        [
            _method_row(maps[method], seconds[method], seconds["peer"])
            for method in GAUSSIAN_METHODS
        ],
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
    return Row(cells, [at_least(ratio, GAUSSIAN_TIMES_FASTER)] if sketch.method == "auto" else [])


def one_row_against_rbf_sampler(*, quick: bool) -> Table:
    X = uniform_rows(600, 784)
    options = {"n_components": 1024, "random_state": 0}
    limits = {"polynomial, degree 4": 0.25, "Gaussian": 0.25, "neural tangent, depth 3": 0.6}
    sketches = (
        PolynomialSketch(4, **options),
        GaussianSketch("scale", **options),
        NeuralTangentSketch(3, **options),
    )
    maps = dict(zip(limits, sketches, strict=True)) | {
        "RBFSampler": RBFSampler(gamma="scale", **options)
    }
    row = X[:1].astype(np.float64)
    calls = {name: partial(feature_map.fit(X).transform, row) for name, feature_map in maps.items()}
    seconds = best_seconds(calls, rounds=usual_rounds(quick))
    bars = {name: [at_most(1e3 * seconds[name], limit)] for name, limit in limits.items()}
    return Table(
        "Transform of a single row",
        "784 columns, 1024 components, float64, one thread.",
        [Row({"map": name, "ms": 1e3 * seconds[name]}, bars.get(name, ())) for name in maps],
    )


MEASUREMENTS = (
    transform_against_scikit_learn,
    transform_against_its_degree,
    two_threads_against_one,
    sparse_rows_against_scikit_learn,
    gaussian_transform_against_rbf_sampler,
    one_row_against_rbf_sampler,
)
