"""Sketched systems: solved as such, and truthful about how far they are from the exact ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from powersketch import solve_kernel_system
from powersketch.kernel_systems import residuals
from powersketch.kernel_systems.residuals import TrueResiduals, estimated_residuals
from powersketch.kernels import Kernel, Polynomial
from powersketch.random_streams import RandomStreams
from tests.kernel_systems.systems import (
    KERNELS,
    long_rows,
    short_rows,
    sparse_rows,
    targets,
    true_residual,
)

ALPHA = 1e-3


def solved(X: Any, y: Any, kernel: Kernel = KERNELS["gaussian"], **options: Any) -> Any:
    options = {"alpha": ALPHA, "random_state": 0, "operator": "sketched"} | options
    with pytest.warns(ConvergenceWarning, match="use operator='exact'"):
        return solve_kernel_system(X, y, kernel, **options)


@pytest.mark.parametrize("name", list(KERNELS))
def test_algorithm_2_solves_the_sketched_system(name: str) -> None:
    X, y, kernel = long_rows(), targets(120), KERNELS[name]
    result = solved(X, y, kernel, method="gradient", tol=1e-8)
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
        solved(X, y, method="gradient", preconditioner="features", tol=tol).iterations
        for tol in (1e-3, 1e-6, 1e-9)
    ]
    # Equally many for every three digits, but for what the start brings.
    assert steps[2] - steps[1] < 1.5 * (steps[1] - steps[0]) + 10


@pytest.mark.parametrize("columns", [None, 3])
def test_conjugate_gradients_with_features(columns: int | None) -> None:
    X, y = long_rows(), targets(120, columns)
    result = solved(X, y, preconditioner="features", tol=1e-8)
    gradient = solved(X, y, preconditioner="features", method="gradient", tol=1e-8)
    np.testing.assert_allclose(result.x, gradient.x, atol=1e-4 * np.abs(result.x).max())
    assert result.iterations < gradient.iterations
    assert result.residual == pytest.approx(
        true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x)
    )


def test_few_features_need_alpha() -> None:
    X, y = long_rows(), targets(120)
    result = solved(X, y, preconditioner="features", n_components=50, alpha=0.1)
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


@pytest.mark.parametrize(
    "X", [long_rows(300, 1500), sparse_rows(300, 1500, density=0.5)], ids=["dense", "csr"]
)
@pytest.mark.parametrize("columns", [None, 3])
def test_estimate_is_near_the_true_residual(X: Any, columns: int | None) -> None:
    y = targets(300, columns)
    kernel = Polynomial(degree=2, coef0=1.0)
    inside = 0
    for seed in range(6):
        result = solved(X, y, kernel, random_state=seed)
        true = true_residual(X, y, kernel, ALPHA, result.x)
        low, high = result.residual_interval
        # Twice the width of 99 % intervals: correct code fails with a chance below 1e-6.
        assert 0.7 < result.residual / true < 1.4
        assert low < result.residual < high
        inside += low <= true <= high
    # At 99 % each, three of six are outside with a chance of 2e-5.
    assert inside >= 4


def test_rows_of_many_sizes_take_few_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = np.exp(np.random.default_rng(2).standard_normal(1200))
    X, y = sizes[:, np.newaxis] * long_rows(1200, 200), targets(1200)
    kernel, drawn, product = Polynomial(degree=2, coef0=1.0), [], Kernel.product

    def counting_product(self, X, V, Y=None, **options):
        drawn.append(len(X))
        return product(self, X, V, Y, **options)

    monkeypatch.setattr(Kernel, "product", counting_product)
    result = solved(X, y, kernel, n_components=150)
    assert drawn == [128]
    low, high = result.residual_interval
    assert low <= true_residual(X, y, kernel, ALPHA, result.x) <= high


@pytest.mark.parametrize("large", [3, 60])
def test_equations_of_large_diagonal_entries_are_not_missed(large: int) -> None:
    kernel = Polynomial(degree=4)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal(2000) + rng.standard_normal((1500, 2000))) / np.sqrt(4000.0)
        rows, y = rng.choice(1500, large, replace=False), rng.standard_normal(1500)
        X[rows] *= 4.0
        result = solved(X, y, kernel, random_state=seed, n_components=1000)
        # Nearly all of the error is in a few equations, where x is small.
        errors = kernel(X) @ result.x + ALPHA * result.x - y
        assert np.linalg.norm(errors[rows]) > 0.9 * np.linalg.norm(errors)
        assert np.abs(result.x[rows]).max() < 0.5 * np.abs(result.x).max()
        low, high = result.residual_interval
        assert low <= np.linalg.norm(errors) / np.linalg.norm(y) <= high


def errors_of_equations(
    monkeypatch: pytest.MonkeyPatch,
    diagonal: Any,
    squares: Any,
    seed: int,
    drawn: list[int] | None = None,
) -> TrueResiduals:
    """Residuals that are estimated where these are the squared errors of all equations."""

    def squared_errors(problem: Any, x: Any, sample: Any, part: slice) -> Any:
        chosen = sample.order[part]
        if drawn is not None:
            drawn.append(chosen.size)
        return squares[chosen, np.newaxis]

    monkeypatch.setattr(residuals, "diagonal_entries", lambda *_: diagonal)
    monkeypatch.setattr(residuals, "_squared_errors", squared_errors)
    problem = SimpleNamespace(
        rows=diagonal.size,
        streams=RandomStreams(seed),
        kernel=None,
        X=None,
        n_jobs=None,
        y=np.ones(diagonal.size),
    )
    x = np.random.default_rng(seed).standard_normal(diagonal.size)
    return estimated_residuals(problem, x)


@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("rows", [140, 1500])
def test_intervals_for_diagonals_of_any_spread(
    spread: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, ratios = 0, []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        diagonal = np.exp(spread * rng.standard_normal(rows))
        squares = diagonal * rng.standard_normal(rows) ** 2
        found = errors_of_equations(monkeypatch, diagonal, squares, seed)
        true = np.sqrt(squares.mean())
        ratios.append(found.worst / true)
        low, high = found.interval or (true, true)
        inside += low <= true <= high
    # Skewed errors make it 97 % rather than 99: fewer than 90 have a chance below 1e-3.
    assert inside >= 90
    assert abs(np.mean(ratios) - 1.0) < 0.03


def test_heavy_tails_take_more_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing tells where the errors are large.
    squares, drawn = np.exp(2.0 * np.random.default_rng(2).standard_normal(5000)), []
    found = errors_of_equations(monkeypatch, np.ones(5000), squares, 0, drawn)
    assert drawn == [128, 128, 256, 512]
    assert found.interval[0] <= np.sqrt(squares.mean()) <= found.interval[1]


def test_all_equations_give_the_residual_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    # One equation in a hundred has all of the error, and nothing tells which.
    squares = np.zeros(900)
    squares[::100] = 1e6
    for seed in range(20):
        found = errors_of_equations(monkeypatch, np.ones(900), squares, seed)
        if found.interval is None:
            break
    assert found.interval is None
    assert found.worst == pytest.approx(100.0)
    assert "confidence" not in found.describe()


def test_certain_equations_alone_have_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    # All but a few are certain to be drawn: what is left says nothing about its own spread.
    diagonal, squares = np.ones(131), np.ones(131)
    diagonal[:8], squares[:8] = 0.0, 100.0
    found = [errors_of_equations(monkeypatch, diagonal, squares, seed) for seed in range(10)]
    exact = [each.worst for each in found if each.interval is None]
    assert exact == pytest.approx([np.sqrt(squares.mean())] * len(exact))
    assert exact


def test_few_equations_are_all_looked_at() -> None:
    X, y = long_rows(100, 1000), targets(100, 2)
    result = solved(X, y)
    assert result.residual_interval is None
    assert result.residual == pytest.approx(
        true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x)
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
    solved(X, y)
    # The matrix of sketched rows, and some rows of the exact one.
    assert entries == [(400, 400), (128, 3000)]


def test_more_coordinates_than_the_data_has_are_the_data() -> None:
    X, y = short_rows(60), targets(60)
    result = solve_kernel_system(X, y, KERNELS["gaussian"], alpha=ALPHA, operator="sketched")
    assert result.converged
    assert true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x) <= 1e-6
    assert result.operator == "exact kernel of the data"
    assert result.message.startswith("factored the exact kernel matrix, as a sketch would be no")
    compressed = solved(X, y, n_components=4)
    assert compressed.operator == "exact kernel of 4 sketched coordinates"
    assert compressed.message.startswith("solved the sketched system, not the exact one (by its")


@pytest.mark.parametrize("method", ["cg", "gradient"])
def test_systems_that_were_not_solved_are_not_said_to_be(method: str) -> None:
    X, y = long_rows(), targets(120)
    options = {"method": method, "preconditioner": "features", "tol": 1e-8}
    stopped = solved(X, y, max_iterations=2, **options)
    assert stopped.message.startswith("stopped in the sketched system, not the exact one (not")
    assert solved(X, y, **options).message.startswith("solved the sketched system, not the exact")


def test_auto_is_exact_unless_that_takes_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = long_rows(60, 600), targets(60)
    options = {"alpha": ALPHA, "random_state": 0}
    assert solve_kernel_system(X, y, KERNELS["gaussian"], **options).converged
    monkeypatch.setattr("powersketch.kernel_systems.solve._MANY_MULTIPLICATIONS", 1e6)
    assert "sketched" in solved(X, y, operator="auto").operator
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
    result = solved(X, y)
    assert result.residuals[0] == 0.0
    assert not result.x[:, 0].any()


def test_one_warning_says_it_all() -> None:
    X, y = long_rows(), targets(120)
    with pytest.warns(ConvergenceWarning) as caught:
        solve_kernel_system(X, y, KERNELS["gaussian"], operator="sketched", random_state=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
