"""Speed of the other ways to sketch a power: each against a plain implementation of the same."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch

from benchmarks.data import normal_rows, sparse_rows
from benchmarks.report import Row, Table, at_least
from benchmarks.timing import best_seconds
from powersketch import PolynomialSketch
from powersketch.powers import Slice, TreeSketch
from powersketch.powers.tree_steps import halves, level
from powersketch.random_streams import RandomStreams

TREE_ROWS, TREE_COLUMNS = 1024, 784
TREE_BAR = 10
TENSOR_ROWS = 2000
TENSOR_BAR = 5


def tree_against_numpy(*, quick: bool) -> Table:
    return Table(
        "The tree of sketches against the same tree in NumPy",
        f"{TREE_ROWS} rows, {TREE_COLUMNS} columns, TensorSRHT nodes, one thread. At 512 "
        "components leaves are SRHTs, at 1024 the rows themselves. NumPy's tree has the same "
        "draws, all rows in every operation, and butterflies on reshaped arrays.",
        [
            _tree_row(size, degree, dtype, rounds=1 if quick else 5)
            for dtype in (np.float32, np.float64)
            for size in (512, 1024)
            for degree in (3, 8, 16)
        ],
    )


def _tree_row(size: int, degree: int, dtype: type, *, rounds: int) -> Row:
    X = normal_rows(TREE_ROWS, TREE_COLUMNS).astype(dtype)
    sketch = TreeSketch.draw(
        RandomStreams(0, "benchmark"),
        TREE_COLUMNS,
        {degree: Slice(0, size, 0)},
        internal=size,
        base_sketch="srht",
        preserve_norms=True,
    )
    out, ones = np.empty((TREE_ROWS, size), dtype=dtype), np.ones(TREE_ROWS)
    calls = {
        "native": lambda: sketch.write(X, ones, None, ones[:, None], out, 1),
        "numpy": lambda: numpy_tree(X, sketch),
    }
    seconds = best_seconds(calls, rounds=rounds)
    np.testing.assert_allclose(out, numpy_tree(X, sketch), atol=1e3 * np.finfo(dtype).eps)
    cells = {
        "dtype": np.dtype(dtype).name,
        "components": size,
        "degree": degree,
        "powersketch ms": 1e3 * seconds["native"],
        "NumPy ms": 1e3 * seconds["numpy"],
        "times faster": seconds["numpy"] / seconds["native"],
    }
    return Row(cells, [at_least(seconds["numpy"] / seconds["native"], TREE_BAR)])


def numpy_tree(X: np.ndarray, sketch: TreeSketch) -> np.ndarray:
    """Return the features of one degree, every row of norm one."""
    vectors = {}
    for step in sketch.steps:
        if not level(step.span):
            base = sketch.bases.get(step.operator)
            vectors[step.span] = X if base is None else _numpy_srht(X, base.spec)
        else:
            left, right = (vectors.pop(half) for half in halves(step.span))
            vectors[step.span] = _numpy_pair(left, right, sketch.pairs[step.operator].spec)
    (last,) = vectors.values()
    return last / np.linalg.norm(last, axis=1, keepdims=True)


def _numpy_srht(X: np.ndarray, spec) -> np.ndarray:
    padded = np.zeros((len(X), spec.padded), dtype=X.dtype)
    padded[:, : X.shape[1]] = X * spec.signs.astype(X.dtype)
    return _hadamard(padded)[:, spec.indices] * X.dtype.type(spec.scale)


def _numpy_pair(A: np.ndarray, B: np.ndarray, spec) -> np.ndarray:
    transformed = []
    for operand, signs in ((A, spec.signs_first), (B, spec.signs_second)):
        padded = np.zeros((len(operand), len(signs)), dtype=operand.dtype)
        padded[:, : operand.shape[1]] = operand
        padded *= signs.astype(operand.dtype)
        transformed.append(_hadamard(padded))
    products = transformed[0][:, spec.first] * transformed[1][:, spec.second]
    return products / A.dtype.type(np.sqrt(len(spec.first)))


def _hadamard(X: np.ndarray) -> np.ndarray:
    """Transform all rows in place."""
    stride = 1
    while stride < X.shape[1]:
        pairs = X.reshape(len(X), -1, 2, stride)
        upper, lower = pairs[:, :, 0], pairs[:, :, 1]
        difference = upper - lower
        upper += lower
        lower[...] = difference
        stride *= 2
    return X


def tensorsketch_against_scikit_learn(*, quick: bool) -> Table:
    dense = normal_rows(TENSOR_ROWS, 784)
    sparse = sparse_rows(TENSOR_ROWS, 20000, 0.01)
    sizes, degrees = ((1024,), (2, 8)) if quick else ((512, 1024, 2000), (2, 4, 8))
    table = Table(
        "TensorSketch against scikit-learn's PolynomialCountSketch",
        f"{TENSOR_ROWS} rows; dense ones have 784 columns, sparse ones 20000, of which 1 % are not "
        "zero. Whole transforms of both estimators; scikit-learn has no threads.",
    )
    for dtype in (np.float32, np.float64):
        for size in sizes:
            for degree in degrees:
                table.rows.extend(_tensor_rows("dense", dense.astype(dtype), size, degree))
        # The peer takes seconds for each of these.
        for degree in degrees[:1] if quick else degrees[:2]:
            table.rows.extend(_tensor_rows("sparse", sparse.astype(dtype), 1024, degree))
    return table


def _tensor_rows(kind: str, X: Any, size: int, degree: int) -> list[Row]:
    options = {"degree": degree, "n_components": size, "random_state": 0}
    peer = PolynomialCountSketch(**options).fit(X)
    calls = {0: partial(peer.transform, X)}
    for threads in (1, 2):
        ours = PolynomialSketch(
            **options, method="tensorsketch", expansion="none", n_jobs=threads
        ).fit(X)
        calls[threads] = partial(ours.transform, X)
    seconds = best_seconds(calls, rounds=1)
    return [
        Row(
            {
                "rows": kind,
                "dtype": X.dtype.name,
                "components": size,
                "degree": degree,
                "threads": threads,
                "powersketch ms": 1e3 * seconds[threads],
                "scikit-learn ms": 1e3 * seconds[0],
                "times faster": seconds[0] / seconds[threads],
            },
            [at_least(seconds[0] / seconds[threads], TENSOR_BAR)],
        )
        for threads in (1, 2)
    ]


MEASUREMENTS = (tree_against_numpy, tensorsketch_against_scikit_learn)
