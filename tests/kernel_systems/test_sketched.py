"""Sketched systems: solved as such, and truthful about how far they are from the exact ones."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from powersketch import solve_kernel_system
from powersketch.kernels import Kernel
from tests.kernel_systems.systems import (
    ALPHA,
    KERNELS,
    long_rows,
    short_rows,
    sketched_solution,
    targets,
    true_residual,
)


@pytest.mark.parametrize("name", list(KERNELS))
def test_algorithm_2_solves_the_sketched_system(name: str) -> None:
    X, y, kernel = long_rows(), targets(120), KERNELS[name]
    result = sketched_solution(X, y, kernel, method="gradient", tol=1e-8)
    # The history is that of the sketched system; the residual is the true one.
    assert result.history[-1] <= 1e-8
    assert result.residual == pytest.approx(true_residual(X, y, kernel, ALPHA, result.x))
    assert result.residual_interval is None
    assert not result.converged
    assert f"{result.residual:.2g}" in result.message
    assert f"{result.history[-1]:.2g}" in result.message


def test_steps_of_algorithm_2_grow_with_the_digits() -> None:
    X, y = long_rows(), targets(120)
    steps = [
        sketched_solution(X, y, method="gradient", preconditioner="features", tol=tol).iterations
        for tol in (1e-3, 1e-6, 1e-9)
    ]
    # Equally many for every three digits, but for what the start brings.
    assert steps[2] - steps[1] < 1.5 * (steps[1] - steps[0]) + 10


@pytest.mark.parametrize("columns", [None, 3])
def test_conjugate_gradients_with_features(columns: int | None) -> None:
    X, y = long_rows(), targets(120, columns)
    result = sketched_solution(X, y, preconditioner="features", tol=1e-8)
    gradient = sketched_solution(X, y, preconditioner="features", method="gradient", tol=1e-8)
    np.testing.assert_allclose(result.x, gradient.x, atol=1e-4 * np.abs(result.x).max())
    assert result.iterations < gradient.iterations
    assert result.residual == pytest.approx(
        true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x)
    )


def test_few_features_need_alpha() -> None:
    X, y = long_rows(), targets(120)
    result = sketched_solution(X, y, preconditioner="features", n_components=50, alpha=0.1)
    assert result.history[-1] <= 1e-6
    for options in ({"alpha": 0.0}, {"method": "gradient"}):
        with pytest.raises(ValueError, match="n_components=50 features are fewer than the 120"):
            solve_kernel_system(
                X,
                y,
                KERNELS["gaussian"],
                operator="sketched",
                preconditioner="features",
                n_components=50,
                **{"alpha": 0.1} | options,
            )


def test_exact_matrix_is_never_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = long_rows(400, 3000), targets(400)
    entries = []
    call, product = Kernel.__call__, Kernel.product

    def counting_call(self, X, Y=None, **options):
        entries.append(X.shape)
        return call(self, X, Y, **options)

    def counting_product(self, X, V, Y=None, **options):
        entries.append(X.shape)
        return product(self, X, V, Y, **options)

    monkeypatch.setattr(Kernel, "__call__", counting_call)
    monkeypatch.setattr(Kernel, "product", counting_product)
    sketched_solution(X, y)
    # The matrix of sketched rows, and some rows of the exact one.
    assert entries == [(400, 400), (128, 3000)]


def test_more_coordinates_than_the_data_has_are_the_data() -> None:
    X, y = short_rows(60), targets(60)
    result = solve_kernel_system(X, y, KERNELS["gaussian"], alpha=ALPHA, operator="sketched")
    assert result.converged
    assert true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x) <= 1e-6
    assert result.operator == "exact kernel of the data"
    assert result.message.startswith("factored the exact kernel matrix, as a sketch would be no")
    compressed = sketched_solution(X, y, n_components=4)
    assert compressed.operator == "exact kernel of 4 sketched coordinates"
    assert compressed.message.startswith("solved the sketched system, not the exact one (by its")


@pytest.mark.parametrize("method", ["cg", "gradient"])
def test_systems_that_were_not_solved_are_not_said_to_be(method: str) -> None:
    X, y = long_rows(), targets(120)
    options = {"method": method, "preconditioner": "features", "tol": 1e-8}
    stopped = sketched_solution(X, y, max_iterations=2, **options)
    assert stopped.message.startswith("stopped in the sketched system, not the exact one (not")
    assert sketched_solution(X, y, **options).message.startswith(
        "solved the sketched system, not the exact"
    )


def test_auto_is_exact_unless_that_takes_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = long_rows(60, 600), targets(60)
    options = {"alpha": ALPHA, "random_state": 0}
    assert solve_kernel_system(X, y, KERNELS["gaussian"], **options).converged
    monkeypatch.setattr("powersketch.kernel_systems.solve._MANY_MULTIPLICATIONS", 1e6)
    assert "sketched" in sketched_solution(X, y, operator="auto").operator
    for preconditioner in ("cholesky", None):
        result = solve_kernel_system(
            X, y, KERNELS["gaussian"], preconditioner=preconditioner, **options
        )
        assert result.operator.startswith("exact")
    short = solve_kernel_system(X[:, :200], y, KERNELS["gaussian"], **options)
    assert short.operator.startswith("exact")


def test_zero_right_hand_sides_have_no_residual() -> None:
    X, y = long_rows(), targets(120, 2)
    y[:, 0] = 0.0
    result = sketched_solution(X, y)
    assert result.residuals[0] == 0.0
    assert not result.x[:, 0].any()


def test_one_warning_says_it_all() -> None:
    X, y = long_rows(), targets(120)
    with pytest.warns(ConvergenceWarning) as caught:
        solve_kernel_system(X, y, KERNELS["gaussian"], operator="sketched", random_state=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
