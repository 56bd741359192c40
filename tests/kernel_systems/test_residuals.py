"""True residuals: estimated from a sample of the equations, by products that may be rounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from powersketch.kernel_systems import sketched
from powersketch.kernel_systems.sketched import (
    TrueResiduals,
    diagonal_entries,
    estimated_residuals,
    rounded_products,
)
from powersketch.kernels import ArcCosine, Gaussian, Kernel, NeuralTangent, Polynomial
from powersketch.random_streams import RandomStreams
from tests.kernel_systems.systems import (
    ALPHA,
    KERNELS,
    long_rows,
    sketched_solution,
    sparse_rows,
    targets,
    true_residual,
)

CHOSEN = np.array([7, 3, 50, 51, 20])
ALL_KERNELS: list[Kernel] = [
    *KERNELS.values(),
    NeuralTangent(bias_variance=0.1),
    ArcCosine(order=0),
]


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=repr)
@pytest.mark.parametrize("X", [long_rows(60), sparse_rows(60)], ids=["dense", "csr"])
def test_diagonal_is_that_of_the_kernel(
    kernel: Kernel, X: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X[3] *= 0.0
    monkeypatch.setattr("powersketch.kernel_systems.sketched._BATCH_BYTES", 8 * 900 * 7)
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
    errors = found - kernel.product(X[CHOSEN], V, X)
    assert np.linalg.norm(errors) <= 2.0 * np.linalg.norm(noise)
    assert np.linalg.norm(noise) <= 0.02 * np.linalg.norm(found)


@pytest.mark.parametrize(("change", "most"), [("far away", 1e-3), ("two clusters", np.inf)])
def test_rows_far_from_the_origin_have_larger_errors(change: str, most: float) -> None:
    X, kernel = rows_with(change), Gaussian(gamma=0.5)
    found, noise = rounded_products(kernel, X, np.ones(60), CHOSEN, None)
    errors = found - kernel.product(X[CHOSEN], np.ones(60), X)
    assert np.linalg.norm(errors) <= 2.0 * np.linalg.norm(noise)
    assert np.linalg.norm(noise) <= most * np.linalg.norm(found)


@pytest.mark.parametrize(
    "X",
    [sparse_rows(60), long_rows(60, 20, dtype=np.float32), long_rows(60)],
    ids=["csr", "short", "float64"],
)
def test_rounding_is_only_for_long_rows_in_float32(X: Any) -> None:
    assert rounded_products(KERNELS["gaussian"], X, np.ones(60), CHOSEN, None) is None


@pytest.mark.parametrize(
    "X", [long_rows(300, 1500), sparse_rows(300, 1500, density=0.5)], ids=["dense", "csr"]
)
@pytest.mark.parametrize("columns", [None, 3])
def test_estimate_is_near_the_true_residual(X: Any, columns: int | None) -> None:
    y = targets(300, columns)
    kernel = Polynomial(degree=2, coef0=1.0)
    inside = 0
    for seed in range(6):
        result = sketched_solution(X, y, kernel, random_state=seed)
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
    result = sketched_solution(X, y, kernel, n_components=150)
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
        result = sketched_solution(X, y, kernel, random_state=seed, n_components=1000)
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

    def squared_errors(operator: Any, x: Any, y: Any, sample: Any, part: slice) -> Any:
        chosen = sample.order[part]
        if drawn is not None:
            drawn.append(chosen.size)
        return squares[chosen, np.newaxis]

    monkeypatch.setattr(sketched, "diagonal_entries", lambda *_: diagonal)
    monkeypatch.setattr(sketched, "_squared_errors", squared_errors)
    operator: Any = SimpleNamespace(kernel=None, X=None, n_jobs=None)
    x = np.random.default_rng(seed).standard_normal(diagonal.size)
    return estimated_residuals(operator, x, np.ones(diagonal.size), RandomStreams(seed))


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


def test_few_equations_are_all_evaluated() -> None:
    X, y = long_rows(100, 1000), targets(100, 2)
    result = sketched_solution(X, y)
    assert result.residual_interval is None
    assert result.residual == pytest.approx(
        true_residual(X, y, KERNELS["gaussian"], ALPHA, result.x)
    )
