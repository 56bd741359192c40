"""The exact system: true residuals, whatever preconditions it and however it is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from powersketch import SketchPreconditioner, solve_kernel_system
from powersketch.exceptions import InputError
from powersketch.kernels import Gaussian, Kernel, as_kernel
from powersketch.linalg import conjugate_gradients, preconditioned_gradient
from tests.kernel_systems.systems import (
    ALPHA,
    KERNELS,
    long_rows,
    short_rows,
    sparse_rows,
    targets,
    true_residual,
)

SKETCHED = {"operator": "sketched", "tol": 0.99}


def solved(X: Any, y: Any, kernel: Kernel | str = KERNELS["gaussian"], **options: Any) -> Any:
    options = {"alpha": ALPHA, "random_state": 0} | options
    return solve_kernel_system(X, y, kernel, **options)


@pytest.mark.parametrize("preconditioner", ["auto", "sketched-data"])
@pytest.mark.parametrize("name", list(KERNELS))
def test_default_preconditioners_reach_the_tolerance_in_few_steps(
    name: str, preconditioner: Any
) -> None:
    X, y, kernel = long_rows(), targets(120), KERNELS[name]
    result = solved(X, y, kernel, alpha=0.0, tol=1e-9, preconditioner=preconditioner)
    assert result.converged
    assert result.iterations <= 40
    assert true_residual(X, y, kernel, 0.0, result.x) <= 1.01e-9
    assert result.residual_interval is None


@pytest.mark.parametrize(
    "preconditioner", ["cholesky", "sketched-data", "features", "nystroem", "none"]
)
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_every_preconditioner_gives_the_solution(preconditioner: Any, columns: int | None) -> None:
    X, y = short_rows(150), targets(150, columns)
    result = solved(X, y, preconditioner=preconditioner, tol=1e-10)
    assert result.x.shape == y.shape
    expected = np.linalg.solve(KERNELS["gaussian"](X) + ALPHA * np.eye(150), y)
    np.testing.assert_allclose(result.x, expected, atol=1e-6 * np.abs(expected).max())
    assert result.residuals.shape == (columns or 1,)


def test_given_preconditioners_are_used() -> None:
    X, y = short_rows(150), targets(150)
    A = KERNELS["gaussian"](X) + ALPHA * np.eye(150)
    inverse = np.linalg.inv(A)
    given = SketchPreconditioner(X, KERNELS["gaussian"], ALPHA, random_state=0)
    for preconditioner in (inverse, lambda V: inverse @ V, given):
        assert solved(X, y, preconditioner=preconditioner).iterations <= 2
    assert solved(X, y, preconditioner=given).preconditioner == given.describe()
    assert solved(X, y, preconditioner=None, tol=1e-3).preconditioner == "none"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("budget", "stored"),
    [
        (None, "float64"),
        (4 * 150**2, {"float64": "recomputed", "float32": "float32"}),
        (0, "recomp"),
    ],
)
def test_accuracy_does_not_depend_on_what_is_stored(
    budget: int | None, stored: Any, dtype: Any
) -> None:
    X, y = short_rows(150, dtype=dtype), targets(150)
    result = solved(X, y, tol=1e-10, memory_budget=budget)
    assert result.converged
    assert true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x) <= 1.01e-10
    assert (stored if isinstance(stored, str) else stored[np.dtype(dtype).name]) in result.operator


def test_auto_factors_what_is_stored_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = short_rows(150), targets(150)
    assert "Cholesky" in solved(X, y).preconditioner
    assert "nystroem" in solved(X, y, memory_budget=0).preconditioner
    monkeypatch.setattr("powersketch.kernel_systems.preconditioner._FACTORED_ROWS", 149)
    assert "nystroem" in solved(X, y).preconditioner


def test_size_of_the_sketch_is_obeyed() -> None:
    X, y = short_rows(150), targets(150)
    result = solved(X, y, preconditioner="nystroem", n_components=31)
    assert "rank 31" in result.preconditioner


@pytest.mark.parametrize("preconditioner", ["auto", "cholesky", "features", "sketched-data"])
def test_gradient_steps_solve_the_exact_system_too(preconditioner: Any) -> None:
    X, y = long_rows(50), targets(50, 2)
    result = solved(X, y, method="gradient", preconditioner=preconditioner, tol=1e-2)
    assert result.converged
    assert true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x) <= 1.01e-2


@pytest.mark.parametrize("X", [sparse_rows(), sparse_rows().tocsc(), long_rows().tolist()])
def test_kinds_of_rows(X: Any) -> None:
    y = targets(120)
    result = solved(X, y, tol=1e-9)
    assert true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x) <= 1.01e-9


def test_arguments_are_left_as_they_are() -> None:
    X, y = short_rows(60), targets(60)
    X.flags.writeable = y.flags.writeable = False
    before = X.copy(), y.copy()
    for preconditioner in ("auto", "sketched-data", "nystroem"):
        solved(X, y, preconditioner=preconditioner)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_small_systems() -> None:
    kernel = Gaussian()
    np.testing.assert_allclose(solved([[3.0]], [2.0], kernel, alpha=1.0).x, [1.0])
    result = solved(short_rows(40), np.zeros(40), kernel)
    assert result.converged
    assert not result.x.any()


def test_seed_decides() -> None:
    X, y = short_rows(150), targets(150)
    first, again = (solved(X, y, preconditioner="nystroem", n_components=20) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    other = solved(X, y, preconditioner="nystroem", n_components=20, random_state=1)
    assert (first.x != other.x).any()


def test_equal_rows_without_alpha() -> None:
    X = np.repeat(short_rows(30), 2, axis=0)
    y = targets(60)
    with pytest.warns(
        ConvergenceWarning, match="singular to working precision.* use an alpha well"
    ):
        result = solved(X, y, alpha=0.0)
    # The equations contradict each other, and half of the right-hand side cannot be met.
    assert not result.converged
    assert result.residual > 0.1
    # A right-hand side that is the same for equal rows can be.
    result = solved(X, np.repeat(targets(30), 2), alpha=0.0)
    assert result.residual <= 1e-6


def test_steps_that_do_not_suffice_are_reported() -> None:
    X, y = short_rows(150), targets(150)
    with pytest.warns(ConvergenceWarning, match="above tol=1e-10"):
        result = solved(X, y, preconditioner="none", max_iterations=3, tol=1e-10)
    assert result.iterations == 3
    assert result.residual == pytest.approx(
        true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x), rel=1e-6
    )


def test_callback_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    X, y, seen = short_rows(150), targets(150), []
    result = solved(
        X, y, preconditioner="none", callback=lambda step, _: seen.append(step), verbose=1, tol=1e-3
    )
    assert seen == list(range(1, result.iterations + 1))
    assert capsys.readouterr().err


def test_cholesky_needs_the_matrix() -> None:
    with pytest.raises(ValueError, match="memory_budget"):
        solved(short_rows(60), targets(60), preconditioner="cholesky", memory_budget=0)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"operator": "magic"}, ValueError, "'auto', 'exact', 'sketched'"),
        ({"method": "magic"}, ValueError, "'cg', 'gradient'"),
        ({"preconditioner": "magic"}, ValueError, "'cholesky'"),
        ({"preconditioner": "nystroem", "method": "gradient"}, ValueError, "'nystroem' is unknown"),
        ({"preconditioner": np.eye(60), "method": "gradient"}, TypeError, "ndarray"),
        ({"preconditioner": "nystroem", "operator": "sketched"}, ValueError, "'features'"),
        ({"preconditioner": np.eye(60), "operator": "sketched"}, TypeError, "ndarray"),
        ({"alpha": -1.0}, ValueError, "alpha=-1"),
        ({"tol": 0.0}, ValueError, "tol=0"),
        ({"tol": 1e-17}, ValueError, "double precision"),
        ({"tol": 1.0}, ValueError, "below 1"),
        ({"max_iterations": 0}, ValueError, "max_iterations=0"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"memory_budget": -1}, ValueError, "memory_budget=-1"),
        ({"callback": 3}, TypeError, "callback=3"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
        ({"random_state": "x"}, TypeError, "random_state='x'"),
        ({"kernel": "matern"}, ValueError, "kernel='matern'"),
        ({"y": targets(59)}, ValueError, r"shape \(59,\)"),
        ({"y": np.empty((60, 0))}, ValueError, r"shape \(60, 0\)"),
        ({"y": np.ones((60, 1, 1))}, ValueError, r"shape \(60, 1, 1\)"),
        ({"y": np.full(60, np.nan)}, ValueError, "y contains NaN"),
        ({"y": np.full(60, 1j)}, TypeError, "complex"),
        ({"y": sparse_rows(60, 1)}, TypeError, "toarray"),
        ({"X": np.full((60, 2), np.nan)}, ValueError, "X contains NaN"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(
    options: dict[str, Any], error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_work(*_, **__):
        raise AssertionError("the kernel was computed")

    monkeypatch.setattr(Gaussian, "__call__", no_work)
    monkeypatch.setattr(Gaussian, "product", no_work)
    given = {"X": short_rows(60), "y": targets(60), "kernel": Gaussian()} | options
    with pytest.raises(error, match=text):
        solve_kernel_system(given.pop("X"), given.pop("y"), given.pop("kernel"), **given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preconditioner": "cholesky", "n_components": 9}, "n_components=9 has no effect"),
        ({"preconditioner": "none", "n_components": 9}, "n_components=9 has no effect"),
        ({"preconditioner": np.eye(60), "n_components": 9}, "n_components=9 has no effect"),
        ({**SKETCHED, "memory_budget": 9}, "memory_budget=9 has no effect"),
        ({**SKETCHED, "max_iterations": 9}, "max_iterations=9 has no effect"),
        ({**SKETCHED, "callback": print}, "callback=.* has no effect"),
    ],
)
def test_a_system_refuses_what_it_does_not_use(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        solved(short_rows(60), targets(60), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"preconditioner": "nystroem", "n_components": 9, "memory_budget": 9, "max_iterations": 99},
        {**SKETCHED, "preconditioner": "features", "max_iterations": 99, "callback": lambda *_: 0},
        {**SKETCHED, "n_components": 5},
    ],
)
def test_a_system_takes_what_it_uses(options: dict[str, Any]) -> None:
    assert solved(short_rows(60), targets(60), **{"alpha": 0.1} | options).converged


def test_a_number_of_components_asks_for_a_sketch() -> None:
    X, y = short_rows(60), targets(60)
    assert "rank 9" in solved(X, y, n_components=9).preconditioner
    assert "Cholesky" in solved(X, y).preconditioner


def test_a_kernel_by_its_name() -> None:
    X, y = short_rows(60), targets(60)
    named, given = solved(X, y, "rbf"), solved(X, y, as_kernel("gaussian", X))
    np.testing.assert_array_equal(named.x, given.x)


@pytest.mark.parametrize("verbose", ["a", 1.5, None, -1])
def test_verbose_is_a_number_or_a_truth_value(verbose: Any) -> None:
    X, y = short_rows(60), targets(60)
    calls = (
        lambda: solved(X, y, verbose=verbose),
        lambda: SketchPreconditioner(X, Gaussian(), 0.1, verbose=verbose),
        lambda: conjugate_gradients(np.eye(60), y, verbose=verbose),
        lambda: preconditioned_gradient(np.eye(60), y, np.eye(60), verbose=verbose),
    )
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=f"verbose={verbose!r}"):
            call()


def test_the_warning_of_a_solver_names_the_line_of_the_user() -> None:
    X, y = short_rows(60), targets(60)
    with pytest.warns(ConvergenceWarning) as caught:
        solve_kernel_system(X, y, Gaussian(), preconditioner="none", max_iterations=2)
    assert [warning.filename for warning in caught] == [__file__]
