"""The operators multiply like the matrices they stand for, however these are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from powersketch.kernels import Gaussian, Kernel, Polynomial, as_kernel
from powersketch.linalg import FactorOperator, KernelOperator, operators
from tests.linalg.systems import each_kernel, rows, vectors

_N = 70
_FULL, _HALF = 8 * _N**2, 4 * _N**2


@pytest.mark.parametrize(
    ("budget", "dtype", "stored", "text"),
    [
        (_FULL, np.float64, "float64", "exact kernel, stored in float64"),
        (_FULL, np.float32, "float64", "exact kernel, stored in float64"),
        (_FULL - 1, np.float32, "float32", "exact kernel, stored in float32"),
        (_HALF, np.float32, "float32", "exact kernel, stored in float32"),
        (_FULL - 1, np.float64, "nothing", "exact kernel, recomputed for every product"),
        (_HALF - 1, np.float32, "nothing", "exact kernel, recomputed for every product"),
        (0, np.float64, "nothing", "exact kernel, recomputed for every product"),
        (None, np.float32, "float64", "exact kernel, stored in float64"),
    ],
)
def test_the_budget_decides_what_is_stored(
    budget: int | None, dtype: Any, stored: str, text: str
) -> None:
    operator = KernelOperator(Gaussian(), rows(_N).astype(dtype), memory_budget=budget)
    assert (operator.stored, operator.describe()) == (stored, text)
    if stored == "nothing":
        assert operator.matrix is None
    else:
        assert operator.matrix.dtype == stored
        assert operator.matrix.shape == (_N, _N)


@pytest.mark.parametrize(
    ("available", "stored"), [(2 * _FULL, "float64"), (2 * _FULL - 2, "nothing")]
)
def test_the_default_budget_is_half_of_what_is_available(
    available: int, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersketch.linalg.operators.available_memory", lambda: available)
    assert KernelOperator(Gaussian(), rows(_N)).stored == stored


@each_kernel
@pytest.mark.parametrize("budget", [None, 0])
@pytest.mark.parametrize("shape", [(_N,), (_N, 1), (_N, 3)])
def test_products_are_those_of_the_matrix(
    kernel: Kernel, budget: int | None, shape: tuple[int, ...]
) -> None:
    X, V = rows(_N), vectors(*shape)
    operator = KernelOperator(kernel, X, alpha=0.3, memory_budget=budget)
    expected = (kernel(X) + 0.3 * np.eye(_N)) @ V
    for product in (operator @ V, operator.T @ V, operator.H @ V, operator.exact_product(V)):
        assert product.dtype == np.float64
        np.testing.assert_allclose(product, expected, rtol=0, atol=1e-12 * abs(expected).max())


def test_float32_storage_rounds_products_but_not_exact_ones() -> None:
    X, V = rows(_N).astype(np.float32), vectors(_N, 2)
    kernel = Gaussian(gamma=0.3)
    operator = KernelOperator(kernel, X, alpha=0.1, memory_budget=_HALF)
    expected = (kernel(X.astype(np.float64)) + 0.1 * np.eye(_N)) @ V
    rounded = abs(operator @ V - expected).max() / abs(expected).max()
    assert 1e-10 < rounded < 1e-5
    np.testing.assert_allclose(operator.exact_product(V), expected, rtol=0, atol=1e-12)
    assert operator.rounding == np.finfo(np.float32).eps


def test_vectors_of_any_size_survive_float32_storage() -> None:
    X, V = rows(_N).astype(np.float32), vectors(_N, 3)
    operator = KernelOperator(Gaussian(), X, memory_budget=_HALF)
    scales = np.array([1e-200, 1.0, 1e200])
    expected = operator @ V
    # Products cancel, so that errors are relative to the largest one.
    accuracy = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(operator @ (V * scales) / scales, expected, rtol=0, atol=accuracy)


@pytest.mark.parametrize("layout", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("budget", [None, 0])
def test_sparse_rows(layout: Callable[[Any], Any], budget: int | None) -> None:
    X, V = rows(_N), vectors(_N)
    dense = KernelOperator(Polynomial(degree=3), X, alpha=0.1)
    operator = KernelOperator(Polynomial(degree=3), layout(X), alpha=0.1, memory_budget=budget)
    np.testing.assert_allclose(operator @ V, dense @ V, rtol=1e-11)


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], lambda X: X.tolist()]
)
@pytest.mark.parametrize("budget", [None, 0])
def test_layouts(change: Callable[[Any], Any], budget: int | None) -> None:
    X, V = rows(_N), vectors(_N, 2)
    operator = KernelOperator(Gaussian(), change(X), memory_budget=budget)
    np.testing.assert_allclose(operator @ change(V), Gaussian()(X) @ V, rtol=1e-12, atol=1e-13)


def test_read_only_input_stays_as_it_is() -> None:
    X, V = rows(_N), vectors(_N)
    X.flags.writeable = V.flags.writeable = False
    for budget in (None, 0):
        KernelOperator(Gaussian(), X, alpha=1.0, memory_budget=budget) @ V
    np.testing.assert_array_equal(X, rows(_N))


def test_the_matrix_is_computed_once_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, compute = [], Gaussian.__call__

    def counting(self: Any, X: Any, **options: Any) -> Any:
        calls.append(X.shape)
        return compute(self, X, **options)

    monkeypatch.setattr(Gaussian, "__call__", counting)
    operator = KernelOperator(Gaussian(), rows(_N))
    assert calls == []
    for _ in range(2):
        operator @ vectors(_N)
    assert calls == [(_N, rows(_N).shape[1])]


def test_a_kernel_by_its_name() -> None:
    operator = KernelOperator("rbf", rows(_N))
    assert operator.kernel == as_kernel("gaussian", rows(_N))


def test_entries_beyond_the_range_of_numbers_are_refused() -> None:
    operator = KernelOperator(Polynomial(degree=2), [[1e200]])
    with pytest.raises(ValueError, match="overflows"):
        operator @ [1.0]


def test_the_stored_matrix_cannot_be_changed_by_mistake() -> None:
    operator = KernelOperator(Gaussian(), rows(_N))
    with pytest.raises(ValueError, match="read-only"):
        operator.matrix[0, 0] = 2.0


@pytest.mark.parametrize("budget", [None, 0])
def test_one_row_and_one_column(budget: int | None) -> None:
    operator = KernelOperator(Polynomial(degree=2), [[3.0]], alpha=1.0, memory_budget=budget)
    assert operator @ [2.0] == [164.0]


@pytest.mark.parametrize("budget", [None, 0])
def test_threads_change_nothing_but_rounding(budget: int | None) -> None:
    X, V = rows(300), vectors(300, 2)
    one = KernelOperator(Gaussian(), X, memory_budget=budget) @ V
    two = KernelOperator(Gaussian(), X, memory_budget=budget, n_jobs=2) @ V
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)


def test_scipy_solves_with_it() -> None:
    b = vectors(_N)
    operator = KernelOperator(Gaussian(), rows(_N), alpha=0.1)
    assert isinstance(operator, LinearOperator)
    x, status = cg(operator, b, rtol=1e-10)
    assert status == 0
    np.testing.assert_allclose(operator @ x, b, rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(_N, 5), (3, 90), (1, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_product_of_features(dtype: Any, shape: tuple[int, int], order: Any) -> None:
    Z = np.asarray(vectors(*shape), dtype=dtype, order=order)
    V = vectors(shape[0], 2)
    operator = FactorOperator(Z, alpha=0.2)
    matrix = Z.astype(np.float64) @ Z.T.astype(np.float64) + 0.2 * np.eye(shape[0])
    close = {"rtol": 0, "atol": 1e-12 * abs(matrix).max() * shape[1]}
    np.testing.assert_allclose(operator.exact_product(V), matrix @ V, **close)
    np.testing.assert_allclose(operator.exact_product(V[:, 0]), matrix @ V[:, 0], **close)
    close["atol"] *= 1e7 if dtype == np.float32 else 1
    np.testing.assert_allclose(operator @ V, matrix @ V, **close)
    assert operator.describe() == f"product of {shape[1]} features in {np.dtype(dtype)}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_panels_give_the_product_of_the_whole(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, V = vectors(37, 23).astype(dtype), vectors(23, 4)
    W = vectors(37, 4)
    expected = operators.exact_product(matrix, V), operators.exact_transposed_product(matrix, W)
    for limit in (1, 23 * 4, 1000):
        monkeypatch.setattr(operators, "_MULTIPLICATIONS", limit)
        monkeypatch.setattr(operators, "_ENTRIES_CONVERTED", limit)
        np.testing.assert_allclose(operators.exact_product(matrix, V), expected[0], rtol=1e-12)
        np.testing.assert_allclose(
            operators.exact_transposed_product(matrix, W), expected[1], rtol=1e-12
        )
        rounded = operators._rounded_product(matrix, V)
        np.testing.assert_allclose(rounded, expected[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kernel": "matern"}, ValueError, "kernel='matern' is unknown"),
        ({"alpha": -1.0}, ValueError, r"alpha=-1\.0 is out of range.*at least 0"),
        ({"alpha": np.nan}, ValueError, "alpha=nan"),
        ({"memory_budget": -1}, ValueError, "memory_budget=-1.*bytes"),
        ({"memory_budget": 1e9}, TypeError, "memory_budget=.*float"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
        ({"X": [[np.nan]]}, ValueError, "NaN"),
        ({"X": [[np.inf, 1.0]]}, ValueError, "infinity"),
        ({"X": np.empty((0, 3))}, ValueError, "0 sample"),
        ({"X": [1.0, 2.0]}, ValueError, "2D array"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        KernelOperator(**{"kernel": Gaussian(), "X": [[1.0]], **arguments})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A: A.exact_product(np.ones(3)), ValueError, r"shape \(3,\); allowed are \(5,\)"),
        (lambda A: A.exact_product(np.ones((5, 1, 1))), ValueError, r"shape \(5, 1, 1\)"),
        (lambda A: A @ (np.ones(5) * 1j), TypeError, "real numbers"),
        (lambda A: A.exact_product(sparse.csr_array(np.eye(5))), TypeError, "toarray"),
    ],
)
def test_bad_vectors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(KernelOperator(Gaussian(), rows(5)))


@pytest.mark.parametrize(
    ("Z", "alpha", "message"),
    [([[np.nan]], 0.0, "NaN"), ([1.0], 0.0, "2D array"), ([[1.0]], -1.0, "alpha=-1.0")],
)
def test_bad_features(Z: Any, alpha: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FactorOperator(Z, alpha)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_few_and_many_vectors_give_the_same_products(dtype: Any, columns: int) -> None:
    X = np.random.default_rng(0).standard_normal((40, 3)).astype(dtype)
    budget = 40 * 40 * np.dtype(dtype).itemsize
    operator = KernelOperator(Gaussian(0.3), X, 0.5, memory_budget=budget)
    assert operator.stored == np.dtype(dtype).name
    V = np.random.default_rng(1).standard_normal((40, columns))
    expected = Gaussian(0.3)(X.astype(float)) @ V + 0.5 * V
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(operator @ V, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("budget", [_HALF, 0])
def test_many_float32_rows_are_multiplied_in_float32(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "_MANY_ROWS", 50)
    X, V = rows(_N).astype(np.float32), 1e-30 * vectors(_N, 3)
    operator = KernelOperator(Gaussian(), X, 0.5, memory_budget=budget)
    exact = (Gaussian()(X, dtype=np.float64) + 0.5 * np.eye(_N)) @ V
    largest = np.abs(exact).max()
    assert operator.rounding == np.finfo(np.float32).eps
    np.testing.assert_allclose(operator @ V, exact, rtol=0, atol=1e-5 * largest)
    np.testing.assert_allclose(operator.exact_product(V), exact, rtol=0, atol=1e-12 * largest)
    assert not np.allclose(operator @ V, exact, rtol=0, atol=1e-12 * largest)
