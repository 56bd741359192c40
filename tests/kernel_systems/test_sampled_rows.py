"""Rows of a kernel matrix from rounded inner products; and what is subtracted before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersketch.kernel_systems.centring import useful_shift
from powersketch.kernel_systems.sampled_rows import (
    diagonal_entries,
    rounded_products,
    sampled_products,
)
from powersketch.kernel_systems.sketched_data import compressed_rows
from powersketch.kernels import ArcCosine, Gaussian, Kernel, NeuralTangent, Polynomial
from powersketch.random_streams import RandomStreams
from tests.kernel_systems.systems import KERNELS, long_rows, sparse_rows, targets

CHOSEN = np.array([7, 3, 50, 51, 20])
ALL_KERNELS: list[Kernel] = [
    *KERNELS.values(),
    NeuralTangent(bias_variance=0.1),
    ArcCosine(order=0),
]


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_of_the_kernel(kernel: Kernel, dtype: Any) -> None:
    X, V = long_rows(60, dtype=dtype), targets(60, 2)
    expected = kernel.product(X[CHOSEN].astype(float), V, X.astype(float))
    found = sampled_products(kernel, X, V, CHOSEN, None)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
@pytest.mark.parametrize("X", [long_rows(60), sparse_rows(60)], ids=["dense", "csr"])
def test_diagonal_is_that_of_the_kernel(
    kernel: Kernel, X: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X[3] *= 0.0
    monkeypatch.setattr("powersketch.kernel_systems.sampled_rows._BATCH_BYTES", 8 * 900 * 7)
    for rows in (X, X.astype(np.float32), X[:, ::-1]):
        found = diagonal_entries(kernel, rows, 2)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, kernel.diagonal(rows), rtol=1e-5)


def test_diagonal_of_rows_in_float32_does_not_overflow() -> None:
    X = np.full((2, 3), 1e6, np.float32)
    np.testing.assert_allclose(diagonal_entries(Polynomial(degree=4), X, None), 3e12**4)


def rows_with(change: str) -> Any:
    X = long_rows(60)
    if change == "parallel":
        X[3], X[50], X[51] = X[7], 0.5 * X[7], 0.0
    if change == "far away":
        X += 100.0
    if change == "two clusters":
        # No shift brings all rows near the origin.
        X[:, 0] += np.where(np.arange(60) % 2, 300.0, -300.0)
    return X.astype(np.float32)


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
@pytest.mark.parametrize("change", ["none", "parallel"])
def test_rounded_products_know_their_error(kernel: Kernel, change: str) -> None:
    X, V = rows_with(change), targets(60, 2)
    # Two equal or parallel rows are an exact one where functions of cosines have a square root.
    V[51] = 0.0
    found, noise = rounded_products(kernel, X, V, CHOSEN, None)
    errors = found - sampled_products(kernel, X, V, CHOSEN, None)
    assert np.linalg.norm(errors) <= 2.0 * np.linalg.norm(noise)
    assert np.linalg.norm(noise) <= 0.02 * np.linalg.norm(found)


@pytest.mark.parametrize(("change", "most"), [("far away", 1e-3), ("two clusters", np.inf)])
def test_rows_far_from_the_origin_have_larger_errors(change: str, most: float) -> None:
    X, kernel = rows_with(change), Gaussian(gamma=0.5)
    found, noise = rounded_products(kernel, X, np.ones(60), CHOSEN, None)
    errors = found - sampled_products(kernel, X, np.ones(60), CHOSEN, None)
    assert np.linalg.norm(errors) <= 2.0 * np.linalg.norm(noise)
    assert np.linalg.norm(noise) <= most * np.linalg.norm(found)


@pytest.mark.parametrize(
    "X",
    [sparse_rows(60), long_rows(60, 20, dtype=np.float32), long_rows(60)],
    ids=["csr", "short", "float64"],
)
def test_rounding_is_only_for_long_rows_in_float32(X: Any) -> None:
    assert rounded_products(KERNELS["gaussian"], X, np.ones(60), CHOSEN, None) is None


def test_shift_only_where_it_is_of_use() -> None:
    X = long_rows()
    assert useful_shift(Gaussian(), X) is None
    assert useful_shift(Gaussian(), sparse_rows()) is None
    assert useful_shift(Polynomial(), X + 1.0) is None
    np.testing.assert_allclose(useful_shift(Gaussian(), X + 1.0), X.mean(axis=0) + 1.0)


def test_compressed_rows_have_the_norms_of_the_rows() -> None:
    X = long_rows() * np.linspace(0.0, 5.0, 120)[:, np.newaxis]
    for dtype in (np.float64, np.float32):
        compressed = compressed_rows(X.astype(dtype), 40, RandomStreams(0))
        assert compressed.dtype == dtype
        np.testing.assert_allclose(
            np.linalg.norm(compressed, axis=1), np.linalg.norm(X, axis=1), rtol=1e-5
        )
    sparse = sparse_rows()
    np.testing.assert_allclose(
        np.linalg.norm(compressed_rows(sparse, 40, RandomStreams(0)), axis=1),
        np.linalg.norm(sparse.toarray(), axis=1),
    )


def test_compression_does_not_depend_on_batches_and_shifts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = long_rows()
    expected = compressed_rows(X, 40, RandomStreams(0))
    monkeypatch.setattr("powersketch.kernel_systems.sketched_data._BATCH_BYTES", 8 * 900 * 7)
    np.testing.assert_array_equal(compressed_rows(X, 40, RandomStreams(0)), expected)
    moved = compressed_rows(X + 1.0, 40, RandomStreams(0), shift=np.ones(900))
    np.testing.assert_allclose(moved, expected, atol=1e-12)


def test_rows_far_from_the_origin_are_compressed_as_well() -> None:
    X, kernel = long_rows(), Gaussian(gamma=0.5)
    near, far = (
        kernel(compressed_rows(rows, 360, RandomStreams(0), shift=useful_shift(kernel, rows)))
        for rows in (X, X + 10.0)
    )
    K = kernel(X)
    assert np.linalg.norm(far - K) < 1.5 * np.linalg.norm(near - K)
