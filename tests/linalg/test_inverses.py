"""The approximate inverses against dense linear algebra."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import linalg
from scipy.fft import dct
from scipy.sparse.linalg import cg

from powersketch.linalg import (
    CholeskyFactor,
    LowRankInverse,
    SquaredFactor,
    TriangularFactor,
    cholesky,
)
from tests.linalg.systems import dense, tall_matrix

ALPHA = 0.3


def spectrum_matrix(eigenvalues: Any, seed: int = 0) -> Any:
    """A symmetric matrix with these eigenvalues; its eigenvectors are cosines with random signs."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(eigenvalues))
    basis = signs[:, np.newaxis] * dct(np.eye(len(eigenvalues)), norm="ortho")
    matrix = (basis * eigenvalues) @ basis.T
    return 0.5 * (matrix + matrix.T)


def inverses() -> Any:
    """Every kind of inverse, by name, of an 80 × 80 matrix."""
    Z = tall_matrix()
    return {
        "cholesky": CholeskyFactor(Z @ Z.T, alpha=ALPHA),
        "cholesky in float32": CholeskyFactor(Z @ Z.T, alpha=ALPHA, dtype=np.float32),
        "low rank": LowRankInverse(Z, ALPHA),
        "squared": SquaredFactor(TriangularFactor.of_rows(Z.T, ALPHA)),
    }


# 1 to 512 rows are one block, more are several; 1025 ends with a block of one row.
@pytest.mark.parametrize("size", [1, 2, 511, 512, 513, 1025])
def test_cholesky_factor_is_the_inverse(size: int) -> None:
    A = spectrum_matrix(np.linspace(1.0, 100.0, size))
    b = np.random.default_rng(2).standard_normal((size, 3))
    solution = CholeskyFactor(A.copy(), alpha=ALPHA).matmat(b)
    np.testing.assert_allclose((A + ALPHA * np.eye(size)) @ solution, b, atol=1e-11)


def test_cholesky_factor_in_float32_is_the_inverse_up_to_rounding() -> None:
    A = spectrum_matrix(np.linspace(1.0, 100.0, 700))
    b = np.ones(700)
    factor = CholeskyFactor(A.copy(), dtype=np.float32)
    assert factor.precision == "float32"
    residual = np.linalg.norm(A @ (factor @ b) - b) / np.linalg.norm(b)
    assert 1e-9 < residual < 1e-4
    assert (factor @ b).dtype == np.float64


def test_tiny_vectors_do_not_vanish_in_float32() -> None:
    factor = CholeskyFactor(2.0 * np.eye(3), dtype=np.float32)
    tiny = np.array([1e-60, 0.0, -3e-60])
    np.testing.assert_allclose(factor @ tiny, tiny / 2.0, rtol=1e-6)
    assert not (factor @ np.zeros(3)).any()


@pytest.mark.parametrize("stored", [np.float64, np.float32])
def test_float32_gives_way_to_float64_where_it_is_too_coarse(stored: Any) -> None:
    A = spectrum_matrix(np.geomspace(1e-11, 1.0, 600)).astype(stored)
    factor = CholeskyFactor(A.copy(), dtype=np.float32)
    assert factor.precision == "float64"
    if stored == np.float64:
        assert factor.jitter == 0.0
        b = np.ones(600)
        assert np.linalg.norm(A @ (factor @ b) - b) < 1e-4


def test_float32_gives_way_where_numbers_are_too_large() -> None:
    factor = CholeskyFactor(1e60 * np.eye(4), dtype=np.float32)
    assert factor.precision == "float64"
    np.testing.assert_allclose(factor @ np.ones(4), 1e-60)


# Equal rows at the end: one block, or two that are factored before the one that fails.
@pytest.mark.parametrize("size", [40, 1100])
def test_jitter_repairs_rounding_errors(size: int) -> None:
    A = spectrum_matrix(np.linspace(1.0, 2.0, size))
    A[-1], A[:, -1] = A[-2], A[:, -2]
    A[-1, -1] = A[-2, -2]
    factor = CholeskyFactor(A.copy())
    assert 0.0 < factor.jitter < 1e-8
    assert factor.nugget == pytest.approx(factor.jitter * A.diagonal().mean())
    assert "jitter" in factor.describe()
    # A failed attempt has to leave the matrix as it was for the next one.
    shifted = A + factor.nugget * np.eye(size)
    np.testing.assert_allclose(shifted @ (factor @ A[0]), A[0], atol=1e-4)


def test_jitter_is_relative_to_the_diagonal() -> None:
    small, large = (CholeskyFactor(scale * np.ones((30, 30))) for scale in (1e-9, 1e9))
    assert small.jitter == large.jitter
    assert large.nugget == pytest.approx(1e18 * small.nugget)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("matrix", [-np.eye(3), np.zeros((3, 3)), np.diag([1.0, 1.0, -1.0])])
def test_indefinite_matrices_are_refused(matrix: Any, dtype: Any) -> None:
    with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
        CholeskyFactor(matrix.copy(), dtype=dtype)


def test_read_only_and_strided_matrices_are_left_as_they_are() -> None:
    A = spectrum_matrix(np.linspace(1.0, 2.0, 20))
    strided = np.repeat(np.repeat(A, 2, 0), 2, 1)[::2, ::2]
    for given in (A.copy(), np.asfortranarray(A), strided):
        given.flags.writeable = False
        np.testing.assert_allclose(A @ (CholeskyFactor(given) @ np.ones(20)), 1.0)
        np.testing.assert_array_equal(given, A)


@pytest.mark.parametrize(
    ("matrix", "error", "text"),
    [
        (np.ones((2, 3)), ValueError, r"shape \(2, 3\)"),
        (np.ones(3), ValueError, r"shape \(3,\)"),
        (np.empty((0, 0)), ValueError, r"shape \(0, 0\)"),
        (np.eye(3, dtype=int), TypeError, "int64"),
        (np.full((2, 2), np.nan), ValueError, "NaN"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        CholeskyFactor(matrix)


@pytest.mark.parametrize("options", [{"alpha": -1.0}, {"dtype": np.float16}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        CholeskyFactor(np.eye(2), **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_root_of_a_cholesky_factor(dtype: Any) -> None:
    factor = CholeskyFactor(spectrum_matrix(np.linspace(1.0, 3.0, 30)), dtype=dtype)
    R = dense(factor.root())
    np.testing.assert_allclose(R @ R.T, dense(factor), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (1, 1), (30, 1)])
def test_low_rank_inverse(shape: tuple[int, int]) -> None:
    Z = tall_matrix(*shape)
    expected = np.linalg.inv(Z @ Z.T + ALPHA * np.eye(shape[0]))
    np.testing.assert_allclose(dense(LowRankInverse(Z, ALPHA)), expected, atol=1e-11)
    np.testing.assert_allclose(
        dense(LowRankInverse(Z.astype(np.float32), ALPHA)), expected, atol=1e-4
    )


def test_nugget_with_a_tail_is_the_smallest_eigenvalue() -> None:
    Z = tall_matrix() * np.geomspace(1.0, 1e-3, 12)
    smallest = np.linalg.eigvalsh(Z.T @ Z)[0]
    assert LowRankInverse.with_tail(Z, 0.0).nugget == pytest.approx(smallest, rel=0.01)
    assert LowRankInverse.with_tail(Z, 1.0).nugget == pytest.approx(1.0 + smallest)
    assert LowRankInverse.with_tail(Z, 1.0, tail=0.25).nugget == 1.25


def test_nugget_is_positive_for_features_of_lower_rank() -> None:
    Z = np.repeat(tall_matrix(), 2, axis=1)
    inverse = LowRankInverse.with_tail(Z, 0.0)
    assert 0.0 < inverse.nugget < 1e-10
    assert np.isfinite(inverse @ np.ones(80)).all()


def test_features_that_are_zero() -> None:
    np.testing.assert_allclose(
        LowRankInverse.with_tail(np.zeros((4, 2)), 2.0) @ np.ones(4), np.full(4, 0.5)
    )
    with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
        LowRankInverse.with_tail(np.zeros((4, 2)), 0.0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: LowRankInverse(np.ones((3, 1)), 0.0), "nugget=0"),
        (lambda: LowRankInverse(np.ones(3), 1.0), r"shape \(3,\)"),
        (lambda: LowRankInverse(np.full((3, 1), np.inf), 1.0), "NaN or infinity"),
        (lambda: LowRankInverse.with_tail(np.ones((3, 1)), -1.0), "alpha=-1"),
        (lambda: LowRankInverse.with_tail(np.ones((3, 1)), 1.0, tail=-1.0), "tail=-1"),
    ],
)
def test_bad_factors_are_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("name", list(inverses()))
def test_inverses_are_symmetric_positive_definite_operators(name: str) -> None:
    inverse = inverses()[name]
    matrix = dense(inverse)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-5 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0] > 0.0
    np.testing.assert_allclose(inverse @ np.ones(80), matrix.sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(inverse.T @ np.ones(80), inverse @ np.ones(80))
    np.testing.assert_array_equal(inverse.H @ np.ones(80), inverse @ np.ones(80))
    np.testing.assert_array_equal(inverse @ np.ones((80, 1)), (inverse @ np.ones(80))[:, None])
    assert inverse.describe()


@pytest.mark.parametrize("name", list(inverses()))
def test_inverses_precondition_scipys_solver_and_survive_a_pickle(name: str) -> None:
    Z = tall_matrix()
    A = Z @ Z.T + ALPHA * np.eye(80)
    inverse = pickle.loads(pickle.dumps(inverses()[name]))
    x, info = cg(A, np.ones(80), rtol=1e-10, maxiter=4, M=inverse)
    assert info == 0
    np.testing.assert_allclose(A @ x, 1.0, atol=1e-8)


def test_rows_of_very_different_sizes_need_no_jitter() -> None:
    sizes = np.geomspace(1e-12, 1.0, 40)
    A = sizes[:, np.newaxis] * spectrum_matrix(np.linspace(1.0, 2.0, 40)) * sizes
    factor = CholeskyFactor(A.copy())
    assert factor.jitter == 0.0
    np.testing.assert_allclose(A @ (factor @ sizes), sizes, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_columns_are_solved_for_in_panels(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    A, V = (
        spectrum_matrix(np.linspace(1.0, 2.0, 30)),
        np.random.default_rng(0).normal(size=(30, 11)),
    )
    factor = CholeskyFactor(A.copy(), dtype=dtype)
    root = CholeskyFactor(A.copy()).root()
    whole = factor @ V, root.matmat(V), root.rmatmat(V)
    widths: list[int] = []
    monkeypatch.setattr(cholesky, "_MULTIPLICATIONS", 4 * 30**2)
    solved = linalg.cho_solve
    monkeypatch.setattr(
        linalg,
        "cho_solve",
        lambda f, v, **options: widths.append(v.shape[1]) or solved(f, v, **options),
    )
    parts = factor @ V, root.matmat(V), root.rmatmat(V)
    assert widths == [4, 4, 3]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
