"""Algorithm 2: its printed step diverges, the step from the eigenvalues converges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from powersketch.linalg import FactorOperator, TriangularFactor, preconditioned_gradient
from tests.linalg.systems import positive_matrix, true_residuals, vectors

_N = 40


def _sketched_system(
    condition: float, sketch_rows: int, seed: int = 3
) -> tuple[NDArray[np.float64], TriangularFactor]:
    """Columns W with Wᵀ W of a condition number, and R from a normal sketch of W."""
    left, _ = np.linalg.qr(vectors(4 * _N, _N, seed=seed))
    right, _ = np.linalg.qr(vectors(_N, _N, seed=seed + 1))
    W = left * np.geomspace(1.0, condition**-0.5, _N) @ right
    S = vectors(sketch_rows, 4 * _N, seed=seed + 2) / np.sqrt(sketch_rows)
    return W, TriangularFactor.of_rows(S @ W)


@pytest.mark.parametrize("shape", [(_N,), (_N, 1), (_N, 3)])
def test_the_solution_is_that_of_numpy(shape: tuple[int, ...]) -> None:
    W, R = _sketched_system(1e3, 10 * _N)
    b = vectors(*shape)
    result = preconditioned_gradient(FactorOperator(W.T), b, R, tol=1e-10, random_state=0)
    assert result.converged
    assert result.x.shape == shape
    np.testing.assert_allclose(result.x, np.linalg.solve(W.T @ W, b), rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.residuals, true_residuals(W.T @ W, result, b), rtol=1e-3)
    assert result.history.shape == (result.iterations + 1,)
    assert result.preconditioner == "triangular factor in float64"
    assert result.operator == "product of 160 features in float64"


@pytest.mark.parametrize("sketch_rows", [4 * _N, 10 * _N])
def test_the_printed_step_diverges_where_the_other_converges(sketch_rows: int) -> None:
    W, R = _sketched_system(1e4, sketch_rows)
    A, b = W.T @ W, vectors(_N)
    assert preconditioned_gradient(A, b, R, random_state=0).converged
    printed = preconditioned_gradient(A, b, R, step="paper", random_state=0)
    assert not printed.converged
    assert printed.history.max() > 1.0
    assert np.isfinite(printed.x).all()
    B = np.column_stack([R.rmatvec(A @ R.matvec(e)) for e in np.eye(_N)])
    bound = 2.0 / np.linalg.eigvalsh(B)[-1] ** 2
    assert bound < 1.0
    assert f"the step 1 diverges, as it has to be below 2 / λ_max(B)² = {bound:.2f}"[:-1] in (
        printed.message
    )
    assert "step='auto'" in printed.message


def test_the_printed_step_converges_where_the_paper_assumes_it() -> None:
    W, _ = _sketched_system(1e4, 4 * _N)
    R = TriangularFactor.of_rows(W)
    result = preconditioned_gradient(W.T @ W, vectors(_N), R, step="paper", random_state=0)
    # B is the identity up to rounding.
    assert (result.converged, result.iterations) == (True, 1)


def test_steps_grow_with_the_logarithm_of_the_condition_number() -> None:
    conditions = np.array([1e2, 1e5, 1e8])
    steps = []
    for condition in conditions:
        W, R = _sketched_system(condition, 20 * _N)
        result = preconditioned_gradient(FactorOperator(W.T), vectors(_N), R, random_state=0)
        assert result.converged
        steps.append(result.iterations)
    assert steps[0] < steps[2] < 4 * steps[0]
    # By about as much from 1e5 to 1e8 as from 1e2 to 1e5, a thousandfold each.
    assert steps[2] - steps[1] < 3 * (steps[1] - steps[0])


def test_a_step_as_a_number() -> None:
    W, R = _sketched_system(1e2, 10 * _N)
    short = preconditioned_gradient(W.T @ W, vectors(_N), R, step=0.05, random_state=0)
    chosen = preconditioned_gradient(W.T @ W, vectors(_N), R, random_state=0)
    assert short.converged
    assert chosen.converged
    assert short.iterations > 2 * chosen.iterations


def test_converged_columns_are_multiplied_no_more() -> None:
    A = positive_matrix(_N, 5.0)
    _, eigenvectors = np.linalg.eigh(A)
    widths = []

    def product(V: Any) -> Any:
        widths.append(V.shape[1])
        return A @ V

    operator = LinearOperator(A.shape, matvec=product, matmat=product, dtype=float)
    b = np.column_stack((eigenvectors[:, -1], vectors(_N)))
    result = preconditioned_gradient(operator, b, np.eye(_N), random_state=0)
    assert result.converged
    assert set(widths[-20:-1]) == {1}
    assert 2 in widths


def test_float32_features_give_float64_accuracy() -> None:
    W, R = _sketched_system(1e3, 10 * _N)
    Z, b = W.T.astype(np.float32), vectors(_N)
    result = preconditioned_gradient(FactorOperator(Z), b, R, tol=1e-11, random_state=0)
    assert result.converged
    exact = Z.astype(np.float64) @ Z.T.astype(np.float64)
    assert true_residuals(exact, result, b) <= 1.1e-11


def test_stagnation_is_noticed() -> None:
    W, R = _sketched_system(1e10, 10 * _N)
    result = preconditioned_gradient(W.T @ W, vectors(_N), R, tol=1e-13, random_state=0)
    assert not result.converged
    assert result.iterations < 2000
    assert "stagnated" in result.message


def test_too_few_iterations_and_a_start() -> None:
    W, R = _sketched_system(1e2, 10 * _N)
    b = vectors(_N)
    first = preconditioned_gradient(W.T @ W, b, R, max_iterations=20, random_state=0)
    assert (first.converged, first.iterations) == (False, 20)
    assert "20 iterations" in first.message
    whole = preconditioned_gradient(W.T @ W, b, R, random_state=0)
    rest = preconditioned_gradient(W.T @ W, b, R, x0=first.x, random_state=0)
    assert rest.converged
    assert rest.iterations <= whole.iterations - 15
    assert rest.history[0] == pytest.approx(first.residual)


def test_the_same_seed_gives_the_same_bits() -> None:
    W, R = _sketched_system(1e2, 10 * _N)
    b = vectors(_N)
    before = b.copy()
    one, two = (preconditioned_gradient(W.T @ W, b, R, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(b, before)


def test_one_unknown_and_a_zero_right_hand_side() -> None:
    result = preconditioned_gradient([[4.0]], [2.0], [[0.5]], random_state=0)
    np.testing.assert_allclose(result.x, [0.5], rtol=1e-6)
    zero = preconditioned_gradient([[4.0]], [0.0], [[0.5]], random_state=0)
    assert (zero.x, zero.converged, zero.iterations) == ([0.0], True, 0)


def test_progress_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    preconditioned_gradient(np.eye(3), np.ones(3), np.eye(3), random_state=0, verbose=1)
    written = capfd.readouterr()
    assert "[gradient]" in written.err
    assert written.err.endswith("\n")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"step": "unit"}, ValueError, "step='unit' is unknown; use one of 'auto', 'paper'"),
        ({"step": 0.0}, ValueError, r"step=0\.0"),
        ({"step": None}, TypeError, "step=None"),
        ({"tol": 2.0}, ValueError, r"tol=2\.0"),
        ({"max_iterations": 0}, ValueError, "max_iterations=0"),
        ({"R": np.eye(2)}, ValueError, r"R has shape \(2, 2\); allowed is \(3, 3\)"),
        ({"R": "qr"}, TypeError, "R is a str"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
        ({"b": [np.nan, 0.0, 0.0]}, ValueError, "b contains NaN"),
        ({"operator": -np.eye(3)}, np.linalg.LinAlgError, "positive definite"),
        ({"operator": np.zeros((3, 3))}, np.linalg.LinAlgError, "is 0; it has to be"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"operator": np.eye(3), "b": np.ones(3), "R": np.eye(3), **arguments}
    with pytest.raises(error, match=message):
        preconditioned_gradient(given.pop("operator"), given.pop("b"), given.pop("R"), **given)
