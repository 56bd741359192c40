"""LAPACK's Cholesky factorisation in place, and with jitter."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.execution import Progress
from powersketch.kernels import Gaussian
from powersketch.linalg import cholesky, cholesky_in_place, jittered_cholesky


def positive_definite(size: int, dtype: Any = np.float64) -> NDArray[Any]:
    factor = np.random.default_rng(size).normal(size=(size, size + 5))
    return (factor @ factor.T).astype(dtype)


@pytest.mark.parametrize("size", [1, 2, 65, 700])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_writes_the_lower_factor_and_leaves_the_rest(size: int, dtype: Any) -> None:
    matrix = positive_definite(size, dtype)
    before = matrix.copy()
    assert cholesky_in_place(matrix)
    factor = np.tril(matrix).astype(np.float64)
    scale = float(np.abs(before).max())
    tolerance = 1e3 * float(np.finfo(dtype).eps) * scale
    np.testing.assert_allclose(factor @ factor.T, before, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(np.triu(matrix, 1), np.triu(before, 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_says_what_has_no_factor(dtype: Any) -> None:
    indefinite = positive_definite(40, dtype)
    indefinite[17, 17] = -1.0
    assert not cholesky_in_place(indefinite)
    assert not cholesky_in_place(np.zeros((3, 3), dtype))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (30, 2), (39, 39)])
def test_numbers_that_are_not_finite(value: float, place: tuple[int, int]) -> None:
    matrix = positive_definite(40)
    matrix[place] = value
    assert not cholesky_in_place(matrix)


def test_other_threads_run_meanwhile() -> None:
    matrix, done = np.ones((3000, 3000)), threading.Event()
    np.fill_diagonal(matrix, 2.0)
    counted = []

    def count() -> None:
        while not done.is_set():
            counted.append(None)
            done.wait(1e-4)

    counter = threading.Thread(target=count)
    counter.start()
    cholesky_in_place(matrix)
    done.set()
    counter.join()
    # A few before and after the call, if it kept the lock.
    assert len(counted) > 20


def test_jitter_is_relative() -> None:
    matrix = 1e6 * Gaussian(gamma=0.4)(np.random.default_rng(0).random((90, 6)))
    factor, jitter = jittered_cholesky(matrix.copy(), 0.5)
    assert jitter == 0.5
    np.testing.assert_allclose(factor @ factor.T, matrix + 5e5 * np.eye(90), rtol=1e-10)


def test_indefinite_matrix() -> None:
    with pytest.raises(ValueError, match="not positive semi-definite: it has a negative"):
        jittered_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.0)


class TestBlocks:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(cholesky, "_MOST_ROWS_AT_ONCE", 50)
        monkeypatch.setattr(cholesky, "_BLOCK", 32)

    @pytest.mark.parametrize("size", [51, 64, 200])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_give_the_factor_of_the_whole(self, size: int, dtype: Any) -> None:
        matrix = positive_definite(size, dtype)
        before = matrix.copy()
        assert cholesky_in_place(matrix)
        expected = np.linalg.cholesky(before.astype(np.float64))
        tolerance = 1e3 * float(np.finfo(dtype).eps) * float(np.abs(expected).max())
        np.testing.assert_allclose(np.tril(matrix), expected, rtol=0, atol=tolerance)
        np.testing.assert_array_equal(np.triu(matrix, 1), np.triu(before, 1))

    @pytest.mark.parametrize("row", [3, 60, 119])
    def test_say_what_has_no_factor(self, row: int) -> None:
        matrix = positive_definite(120)
        matrix[row, row] = -1.0
        assert not cholesky_in_place(matrix)

    def test_a_jitter_is_tried_in_place(self) -> None:
        rows = np.random.default_rng(0).normal(size=(100, 3))
        matrix = rows @ rows.T
        before = matrix.copy()
        factor, jitter = jittered_cholesky(matrix, 0.0)
        assert factor is matrix
        assert jitter > 0.0
        mean = before.diagonal().mean()
        shifted = before + jitter * mean * np.eye(100)
        np.testing.assert_allclose(factor @ factor.T, shifted, rtol=0, atol=1e-10 * mean)

    def test_progress_is_told(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cholesky_in_place(positive_definite(100), Progress("factor", 100, 1))
        assert "100/100 rows" in capsys.readouterr().err
