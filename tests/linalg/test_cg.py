"""Conjugate gradients find the solution, say how good it is, and say why where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from powersketch.kernels import Gaussian, Kernel
from powersketch.linalg import CholeskyFactor, KernelOperator, conjugate_gradients
from tests.linalg.systems import each_kernel, positive_matrix, rows, true_residuals, vectors

_N = 60


class _Counting(LinearOperator):
    """A matrix that notes how many vectors each product had."""

    def __init__(self, matrix: NDArray[np.float64]) -> None:
        super().__init__(matrix.dtype, matrix.shape)
        self.matrix, self.widths = matrix, list[int]()

    def _matmat(self, V: Any) -> Any:
        self.widths.append(V.shape[1])
        return self.matrix @ V


@each_kernel
@pytest.mark.parametrize("shape", [(_N,), (_N, 1), (_N, 3)])
@pytest.mark.parametrize("budget", [None, 0])
def test_the_solution_is_that_of_numpy(
    kernel: Kernel, shape: tuple[int, ...], budget: int | None
) -> None:
    X, b = rows(_N), vectors(*shape)
    operator = KernelOperator(kernel, X, alpha=0.5, memory_budget=budget)
    result = conjugate_gradients(operator, b, tol=1e-12)
    matrix = kernel(X) + 0.5 * np.eye(_N)
    assert result.converged
    assert result.x.shape == shape
    assert result.x.dtype == np.float64
    np.testing.assert_allclose(result.x, np.linalg.solve(matrix, b), rtol=0, atol=1e-9)


def test_the_residual_is_the_true_one_of_the_worst_column() -> None:
    A, b = positive_matrix(_N, 1e3), vectors(_N, 4)
    result = conjugate_gradients(A, b, tol=1e-5)
    expected = true_residuals(A, result, b)
    np.testing.assert_allclose(result.residuals, expected, rtol=1e-8)
    assert result.residual == result.residuals.max() == result.history[-1]
    assert 1e-8 < result.residual <= 1e-5


@each_kernel
def test_the_inverse_as_preconditioner_takes_one_step(kernel: Kernel) -> None:
    X, b = rows(_N), vectors(_N, 2)
    operator = KernelOperator(kernel, X, alpha=0.5)
    inverse = CholeskyFactor(kernel(X), alpha=0.5)
    result = conjugate_gradients(operator, b, preconditioner=inverse, tol=1e-9)
    assert (result.converged, result.iterations) == (True, 1)
    assert result.preconditioner == "Cholesky factor in float64"
    assert result.operator == "exact kernel, stored in float64"


@pytest.mark.parametrize("kind", ["array", "float32", "sparse", "operator", "callable"])
def test_every_kind_of_preconditioner(kind: str) -> None:
    A, b = positive_matrix(_N, 1e4), vectors(_N, 2)
    inverse = np.linalg.inv(A)
    kinds: dict[str, Any] = {
        "array": inverse,
        "float32": inverse.astype(np.float32),
        "sparse": sparse.csr_array(inverse),
        "operator": LinearOperator(A.shape, matvec=lambda v: inverse @ v, dtype=float),
        "callable": lambda V: inverse @ V,
    }
    result = conjugate_gradients(A, b, preconditioner=kinds[kind], tol=1e-10)
    assert result.converged
    assert result.iterations <= 4
    assert true_residuals(A, result, b).max() <= 1e-10


def test_many_right_hand_sides_are_many_single_solves() -> None:
    # So well conditioned that rounding errors, which depend on the block, are not amplified.
    A = positive_matrix(_N, 4.0)
    b = vectors(_N, 10) * np.geomspace(1e-6, 1e6, 10)
    together = conjugate_gradients(A, b, tol=1e-9)
    steps = []
    for number in range(10):
        alone = conjugate_gradients(A, b[:, number], tol=1e-9)
        steps.append(alone.iterations)
        assert alone.residual == pytest.approx(together.residuals[number], rel=1e-3)
        difference = np.linalg.norm(alone.x - together.x[:, number])
        assert difference <= 1e-12 * np.linalg.norm(alone.x)
    assert together.iterations == max(steps)


def test_converged_columns_are_multiplied_no_more() -> None:
    matrix = positive_matrix(_N, 1e3)
    _, eigenvectors = np.linalg.eigh(matrix)
    # The first two columns take one step each, the last one as many as it takes alone.
    b = np.column_stack((eigenvectors[:, 0], eigenvectors[:, -1], vectors(_N)))
    counting = _Counting(matrix)
    result = conjugate_gradients(counting, b, tol=1e-8)
    assert result.converged
    assert counting.widths[0] == 3
    assert set(counting.widths[1 : result.iterations]) == {1}
    assert len(counting.widths) == result.iterations + 1


def test_zero_columns_have_zero_solutions() -> None:
    A, b = positive_matrix(_N, 10.0), vectors(_N, 3)
    b[:, 1] = 0.0
    result = conjugate_gradients(A, b, x0=np.ones((_N, 3)))
    assert result.converged
    assert not result.x[:, 1].any()
    assert result.residuals[1] == 0.0
    nothing = conjugate_gradients(A, np.zeros(_N))
    assert (nothing.converged, nothing.iterations, nothing.residual) == (True, 0, 0.0)
    assert not nothing.x.any()


def test_the_history_and_the_callback_tell_every_step() -> None:
    A, b = positive_matrix(_N, 1e3), vectors(_N, 2)
    told: list[tuple[int, float]] = []
    result = conjugate_gradients(A, b, callback=lambda *news: told.append(news))
    assert result.history.shape == (result.iterations + 1,)
    assert result.history[0] == pytest.approx(1.0)
    assert [number for number, _ in told] == list(range(1, result.iterations + 1))
    np.testing.assert_array_equal([residual for _, residual in told[:-1]], result.history[1:-1])


def test_a_start_at_the_solution_takes_no_step() -> None:
    A, b = positive_matrix(_N, 1e2), vectors(_N)
    first = conjugate_gradients(A, b, tol=1e-4)
    again = conjugate_gradients(A, b, tol=1e-4, x0=first.x)
    assert again.iterations == 0
    np.testing.assert_allclose(again.x, first.x, rtol=1e-14)
    further = conjugate_gradients(A, b, tol=1e-8, x0=first.x)
    alone = conjugate_gradients(A, b, tol=1e-8)
    assert 0 < further.iterations < alone.iterations


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_right_hand_sides_of_any_size(scale: float) -> None:
    A, b = positive_matrix(_N, 1e2), vectors(_N, 2)
    plain = conjugate_gradients(A, b, tol=1e-10)
    scaled = conjugate_gradients(A, b * scale, tol=1e-10)
    np.testing.assert_allclose(scaled.x / scale, plain.x, rtol=1e-8)


@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only", "float32", "int", "list"])
def test_layouts_of_the_right_hand_side(layout: str) -> None:
    A = positive_matrix(_N, 1e2)
    b = np.round(10.0 * vectors(_N, 2))
    given: Any = {
        "fortran": np.asfortranarray(b),
        "strided": np.repeat(b, 2, axis=0)[::2],
        "read-only": b.copy(),
        "float32": b.astype(np.float32),
        "int": b.astype(np.int64),
        "list": b.tolist(),
    }[layout]
    if layout == "read-only":
        given.flags.writeable = False
    before = np.array(given)
    result = conjugate_gradients(A, given, tol=1e-10)
    np.testing.assert_array_equal(given, before)
    np.testing.assert_allclose(result.x, np.linalg.solve(A, b), rtol=0, atol=1e-6)


@pytest.mark.parametrize("change", [sparse.csr_array, np.asfortranarray, np.ndarray.tolist])
def test_kinds_of_matrices(change: Any) -> None:
    A, b = positive_matrix(_N, 1e2), vectors(_N)
    result = conjugate_gradients(change(A), b, tol=1e-10)
    assert true_residuals(A, result, b) <= 1e-10


def test_one_unknown() -> None:
    result = conjugate_gradients([[4.0]], [2.0])
    assert (result.x, result.iterations) == ([0.5], 1)


def test_too_few_iterations() -> None:
    operator = KernelOperator(Gaussian(), rows(_N), alpha=1e-6)
    result = conjugate_gradients(operator, vectors(_N), tol=1e-8, max_iterations=3)
    assert (result.converged, result.iterations) == (False, 3)
    assert result.x.any()
    matrix = Gaussian()(rows(_N)) + 1e-6 * np.eye(_N)
    assert result.residual == pytest.approx(true_residuals(matrix, result, vectors(_N))[0])
    for part in (f"{result.residual:.2g}", "3 iterations", "tol=1e-08", "larger alpha than 1e-06"):
        assert part in result.message


@pytest.mark.parametrize("budget", [None, 4 * _N**2])
def test_a_singular_matrix_and_a_right_hand_side_beyond_its_range(budget: int | None) -> None:
    X = np.vstack((rows(_N // 2), rows(_N // 2))).astype(np.float32)
    operator = KernelOperator(Gaussian(gamma=9.0), X, memory_budget=budget)
    result = conjugate_gradients(operator, vectors(_N))
    assert not result.converged
    assert np.isfinite(result.x).all()
    assert "singular" in result.message
    assert "a larger alpha than 0" in result.message
    # In the range of the matrix there is a solution, and it is found.
    b = operator.exact_product(vectors(_N))
    assert conjugate_gradients(operator, b, tol=1e-10).converged


@pytest.mark.parametrize(
    ("matrix", "preconditioner"),
    [
        (np.diag([1.0, 1.0, -1.0]), None),
        (np.zeros((3, 3)), None),
        (np.diag([1.0, 2.0, np.nan]), None),
        (np.diag([1.0, 2.0, 3.0]), -np.eye(3)),
        (np.diag([1.0, 2.0, 3.0]), np.zeros((3, 3))),
        (np.diag([1.0, 2.0, 3.0]), lambda V: np.nan * V),
    ],
)
def test_what_is_not_positive_definite(matrix: Any, preconditioner: Any) -> None:
    result = conjugate_gradients(matrix, [1.0, 2.0, 3.0], preconditioner=preconditioner)
    assert not result.converged
    assert np.isfinite(result.x).all()
    assert result.residual <= 1.0
    assert "singular or indefinite" in result.message


def test_a_good_column_is_solved_beside_a_bad_one() -> None:
    A = np.diag([1.0, 2.0, -3.0])
    result = conjugate_gradients(A, np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 9.0]]))
    np.testing.assert_allclose(result.x[:, 0], [1.0, 0.5, 0.0])
    assert result.residuals[0] <= 1e-6 < result.residuals[1]
    assert not result.converged


def test_progress_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    A, b = positive_matrix(_N, 1e2), vectors(_N)
    silent = conjugate_gradients(A, b)
    assert capfd.readouterr() == ("", "")
    conjugate_gradients(A, b, verbose=1)
    written = capfd.readouterr()
    count = silent.iterations
    assert written.out == ""
    assert written.err.endswith(
        f"{count}/{count} iterations (100%), residual {silent.residual:.1e}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tol": 0.0}, ValueError, r"tol=0\.0 is out of range"),
        ({"tol": 1.0}, ValueError, r"tol=1\.0.*below 1"),
        ({"tol": -1e-3}, ValueError, r"tol=-0\.001"),
        ({"tol": np.nan}, ValueError, "tol=nan"),
        ({"tol": 1e-17}, ValueError, "tol=1e-17.*from 1e-15"),
        ({"tol": "small"}, TypeError, "tol='small'"),
        ({"max_iterations": 0}, ValueError, "max_iterations=0"),
        ({"max_iterations": 2.5}, TypeError, r"max_iterations=2\.5"),
        ({"b": np.ones(4)}, ValueError, r"b has shape \(4,\); allowed are \(3,\)"),
        ({"b": np.ones((3, 0))}, ValueError, r"b has shape \(3, 0\)"),
        ({"b": np.ones((3, 1, 1))}, ValueError, r"b has shape \(3, 1, 1\)"),
        ({"b": [1.0, np.nan, 0.0]}, ValueError, "b contains NaN"),
        ({"b": [1.0, np.inf, 0.0]}, ValueError, "b contains NaN or infinity"),
        ({"b": [1.0j, 0.0, 0.0]}, TypeError, "b has dtype complex128"),
        ({"b": ["a", "b", "c"]}, TypeError, "b has dtype <U1"),
        ({"b": sparse.csr_array(np.eye(3))}, TypeError, "b is sparse"),
        ({"x0": np.ones((3, 1))}, ValueError, r"x0 has shape \(3, 1\); allowed is that of b"),
        ({"x0": [0.0, np.nan, 0.0]}, ValueError, "x0 contains NaN"),
        ({"operator": np.ones((3, 2))}, ValueError, r"operator has shape \(3, 2\)"),
        ({"operator": np.ones(3)}, TypeError, "operator is a ndarray.*1 dimensions"),
        ({"operator": "kernel"}, TypeError, "operator is a str"),
        ({"preconditioner": np.eye(2)}, ValueError, r"preconditioner has shape \(2, 2\)"),
        ({"preconditioner": "none"}, TypeError, "preconditioner is a str"),
        ({"preconditioner": lambda V: V[:, 0]}, ValueError, r"\(3, 1\) into \(3,\)"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"operator": np.eye(3), "b": np.ones(3), **arguments}
    with pytest.raises(error, match=message):
        conjugate_gradients(given.pop("operator"), given.pop("b"), **given)


class TestEnds:
    def test_whoever_watches_can_end_it(self) -> None:
        A = np.diag(np.arange(1.0, 60.0))
        seen: list[Any] = []

        def until(x: Any) -> bool:
            seen.append(x)
            return len(seen) == 4

        result = conjugate_gradients(A, np.ones((59, 2)), tol=1e-12, until=until)
        assert (result.iterations, result.converged) == (4, False)
        assert "ended" in result.message
        np.testing.assert_allclose(seen[-1], result.x, rtol=1e-12)
        assert np.linalg.norm(A @ seen[3] - 1.0) < np.linalg.norm(A @ seen[0] - 1.0)

    def test_an_interrupt_is_kept_only_if_asked_for(self) -> None:
        A, calls = np.diag(np.arange(1.0, 60.0)), iter(range(100))

        def preconditioner(V: Any) -> Any:
            if next(calls) % 5 == 4:
                raise KeyboardInterrupt
            return V

        with pytest.raises(KeyboardInterrupt):
            conjugate_gradients(A, np.ones(59), preconditioner=preconditioner)
        options: dict[str, Any] = {"preconditioner": preconditioner, "keep_interrupted": True}
        result = conjugate_gradients(A, np.ones(59), **options)
        assert result.interrupted
        assert np.linalg.norm(A @ result.x - 1.0) < np.linalg.norm(np.ones(59))
