"""One entry for every kind of exact kernel, so that every property is tested on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    Linear,
    NeuralTangent,
    Polynomial,
    WithLinear,
)
from powersketch.kernels.series import PowerSeries

KERNELS: list[Kernel] = [
    Polynomial(),
    Polynomial(degree=7, gamma=0.1, coef0=0.3),
    DotProduct(),
    DotProduct([0.5, 0.0, 2.0, 1.0]),
    Linear(),
    Gaussian(),
    ArcCosine(order=0),
    ArcCosine(order=2),
    ArcCosine(order=0, depth=3),
    ArcCosine(order=1, depth=4),
    ArcCosine(order=2, depth=2),
    NeuralTangent(depth=3),
    NeuralTangent(train_output=False),
    NeuralTangent(depth=3, weight_variance=1.7, bias_variance=0.2),
    NeuralTangent(depth=2, train_output=False, weight_variance=2.5, bias_variance=1.0),
    WithLinear(Gaussian(gamma=0.7), weight=0.3),
    WithLinear(ArcCosine(order=1, depth=2)),
    WithLinear(WithLinear(NeuralTangent(bias_variance=0.5), weight=0.0), weight=2.0),
]
SPARSE_FORMATS: list[Callable[[Any], Any]] = [
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_array,
    sparse.dok_array,
    sparse.bsr_array,
]

# One for every way to prepare rows and to compute tiles; formulas do not matter to these.
TILES: list[Kernel] = [
    Polynomial(degree=7, gamma=0.1, coef0=0.3),
    DotProduct(),
    Gaussian(),
    ArcCosine(order=0, depth=3),
    NeuralTangent(depth=3, weight_variance=1.7, bias_variance=0.2),
    WithLinear(Gaussian(), weight=0.5),
]

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
each_tiling = pytest.mark.parametrize("kernel", TILES, ids=repr)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
sizes = st.integers(min_value=1, max_value=40)


def arc_cosine_series(order: int, depth: int = 1) -> PowerSeries:
    """The series of the kernel."""
    return ArcCosine(order, depth).power_series()


def neural_tangent_series(
    depth: int,
    train_output: bool = True,
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    squared_norm: float = 1.0,
) -> PowerSeries:
    """The series of the kernel of rows of one norm."""
    kernel = NeuralTangent(depth, train_output, weight_variance, bias_variance)
    return kernel.power_series(squared_norm)


def points(rows: int, columns: int = 6, seed: int = 0) -> NDArray[np.float64]:
    """Points of about unit length, a third of their coordinates zero."""
    generator = np.random.default_rng(seed)
    X: NDArray[np.float64] = generator.normal(size=(rows, columns)) / np.sqrt(columns)
    X[generator.random(X.shape) < 1 / 3] = 0.0
    return X


def with_wide_indices(X: NDArray[Any]) -> sparse.csr_array:
    """Rows in CSR format with 64-bit indices, as very large matrices have them."""
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return wide


def read_only(X: Any) -> Any:
    """A copy whose memory cannot be written to, as memory-mapped arrays have it."""
    frozen = X.copy()
    for array in (frozen.data, frozen.indices, frozen.indptr) if sparse.issparse(X) else (frozen,):
        array.flags.writeable = False
    return frozen


def assert_close(actual: NDArray[Any], expected: NDArray[Any], tolerance: float = 1e-12) -> None:
    """Compare with the largest entry as the scale."""
    atol = tolerance * np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=atol)


def assert_refused(
    make: Callable[..., Any], parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**parameters)


def assert_frozen(kernel: Kernel, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(kernel, name, 1)
