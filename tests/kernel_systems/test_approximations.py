"""Rows that are compressed, and what is subtracted before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersketch import SketchPreconditioner
from powersketch.kernel_systems import approximations
from powersketch.kernel_systems.approximations import compressed_rows, useful_shift
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.kernel_systems.systems import long_rows, sparse_rows


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
    monkeypatch.setattr("powersketch.kernel_systems.approximations._BATCH_BYTES", 8 * 900 * 7)
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


def test_columns_of_very_many_rows_are_kept_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(300, 5))
    options: dict[str, Any] = {"alpha": 0.1, "strategy": "nystroem", "n_components": 40}
    usual = SketchPreconditioner(X, Gaussian(0.1), random_state=0, **options)
    monkeypatch.setattr(approximations, "_MANY_ROWS", 100)
    many = SketchPreconditioner(X, Gaussian(0.1), random_state=0, **options)
    V = np.random.default_rng(1).normal(size=(300, 2))
    np.testing.assert_allclose(many @ V, usual @ V, rtol=0, atol=1e-3 * np.abs(usual @ V).max())
    assert approximations.default_rank(1000) == 100
