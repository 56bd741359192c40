"""Iterations whose products are passes over blocks: ridge regression and kernel systems."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest

from powersketch import SketchedKernelRidge, SketchedKernelRidgeClassifier, solve_kernel_system
from powersketch.exceptions import InputError
from powersketch.kernels import Gaussian
from tests.distributed.dask_data import in_blocks, many_rows_from, relative_difference, waves


@pytest.fixture(autouse=True)
def _in_this_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("features", ["sketch", "landmarks"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_by_iterations_is_that_of_sums(features: str, fit_intercept: bool) -> None:
    X, y = waves(1200)
    weights = np.random.default_rng(0).integers(0, 3, 1200).astype(float)
    options: dict[str, Any] = {"features": features, "n_components": 60, "random_state": 0}
    options |= {"alpha": 0.5, "fit_intercept": fit_intercept}
    given = in_blocks(X, 250), in_blocks(y, 250), in_blocks(weights, 250)
    with many_rows_from(500):
        sums = SketchedKernelRidge("gaussian", solver="gram", **options).fit(*given)
        iterations = SketchedKernelRidge("gaussian", solver="cg", tol=1e-9, **options).fit(*given)
    assert iterations.solver_result_.residual <= 1e-9
    assert relative_difference(sums.predict(X), iterations.predict(X)) < 1e-7


def test_alpha_is_chosen_on_rows_of_the_sample() -> None:
    X, y = waves(1200)
    model = SketchedKernelRidgeClassifier(
        "gaussian", features="sketch", n_components=60, solver="cg", random_state=0
    )
    with many_rows_from(500):
        model.fit(in_blocks(X, 250), in_blocks(y > 1.0, 250))
    assert model.score(X, y > 1.0) > 0.85
    assert model.predict_proba(X).shape == (1200, 2)
    assert model.alphas_.size >= 3


@pytest.mark.parametrize("preconditioner", ["auto", "features", "none"])
def test_kernel_systems(preconditioner: str) -> None:
    X, y = waves(300)
    K = Gaussian(2.0)(X) + 0.1 * np.eye(300)
    given = in_blocks(X, 90), in_blocks(y, 100), Gaussian(2.0)
    options: dict[str, Any] = {"alpha": 0.1, "tol": 1e-9, "random_state": 0}
    result = solve_kernel_system(*given, preconditioner=preconditioner, **options)
    assert result.converged
    assert np.linalg.norm(K @ result.x - y) <= 1.1e-9 * np.linalg.norm(y)
    if preconditioner == "auto":
        plain = solve_kernel_system(*given, preconditioner="none", **options)
        assert result.iterations < plain.iterations / 2


def test_kernel_systems_take_gamma_from_the_rows() -> None:
    X, y = waves(120)
    result = solve_kernel_system(in_blocks(X, 50), y, "gaussian", alpha=1.0, tol=1e-8)
    expected = solve_kernel_system(X, y, "gaussian", alpha=1.0, tol=1e-8)
    assert relative_difference(expected.x, result.x) < 1e-6


@pytest.mark.parametrize(
    "option", [{"operator": "sketched"}, {"method": "gradient"}, {"preconditioner": "cholesky"}]
)
def test_what_needs_rows_in_memory_is_refused(option: dict[str, Any]) -> None:
    X, y = waves(60)
    with pytest.raises(InputError):
        solve_kernel_system(in_blocks(X, 20), y, Gaussian(2.0), **option)
