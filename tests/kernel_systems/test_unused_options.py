"""An option that the chosen operator, preconditioner or strategy has no use for is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from powersketch import GaussianSketch, SketchPreconditioner, solve_kernel_system
from powersketch.exceptions import InputError
from powersketch.kernels import Gaussian
from powersketch.linalg import conjugate_gradients, preconditioned_gradient

X = np.random.default_rng(0).standard_normal((60, 5))
y = np.sin(X[:, 0])
KERNEL = Gaussian(0.2)
SKETCHED = {"operator": "sketched", "tol": 0.99}


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
        solve_kernel_system(X, y, KERNEL, alpha=0.1, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"preconditioner": "nystroem", "n_components": 9, "memory_budget": 9, "max_iterations": 99},
        {**SKETCHED, "preconditioner": "features", "max_iterations": 99, "callback": lambda *_: 0},
        {**SKETCHED, "n_components": 5},
    ],
)
def test_a_system_takes_what_it_uses(options: dict[str, Any]) -> None:
    assert solve_kernel_system(X, y, KERNEL, alpha=0.1, random_state=0, **options).converged


def test_a_number_of_components_asks_for_a_sketch() -> None:
    found = solve_kernel_system(X, y, KERNEL, alpha=0.1, n_components=9, random_state=0)
    assert "rank 9" in found.preconditioner
    assert "Cholesky" in solve_kernel_system(X, y, KERNEL, alpha=0.1).preconditioner


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"landmarks": "uniform"}, "landmarks='uniform' has no effect with the strategy 'sketched"),
        ({"strategy": "features", "matrix": KERNEL(X)}, "matrix=.* has no effect"),
        ({"map": GaussianSketch()}, "map=.* has no effect"),
        ({"strategy": "nystroem", "map": GaussianSketch()}, "map=.* has no effect"),
    ],
)
def test_a_preconditioner_refuses_what_it_does_not_use(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        SketchPreconditioner(X, KERNEL, 0.1, **options)


def test_a_given_map_takes_the_seed_unless_it_has_its_own() -> None:
    def products(seed: int, own: int | None) -> Any:
        map = GaussianSketch(0.2, n_components=80, random_state=own)
        options: dict[str, Any] = {"strategy": "features", "map": map, "random_state": seed}
        return SketchPreconditioner(X, KERNEL, 0.1, **options) @ y

    np.testing.assert_array_equal(products(1, None), products(1, None))
    assert not np.array_equal(products(1, None), products(1, 7))


@pytest.mark.parametrize("verbose", ["a", 1.5, None, -1])
def test_verbose_is_a_number_or_a_truth_value(verbose: Any) -> None:
    calls = (
        lambda: solve_kernel_system(X, y, KERNEL, alpha=0.1, verbose=verbose),
        lambda: SketchPreconditioner(X, KERNEL, 0.1, verbose=verbose),
        lambda: conjugate_gradients(np.eye(60), y, verbose=verbose),
        lambda: preconditioned_gradient(np.eye(60), y, np.eye(60), verbose=verbose),
    )
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=f"verbose={verbose!r}"):
            call()


def test_the_warning_of_a_solver_names_the_line_of_the_user() -> None:
    with pytest.warns(ConvergenceWarning) as caught:
        solve_kernel_system(X, y, KERNEL, alpha=1e-6, preconditioner="none", max_iterations=2)
    assert [warning.filename for warning in caught] == [__file__]


def test_landmarks_beyond_the_rows_are_reported() -> None:
    with pytest.warns(UserWarning, match="n_components=99 exceeds the 60 rows") as caught:
        built = SketchPreconditioner(X, KERNEL, 0.1, strategy="nystroem", n_components=99)
    assert built.n_components_ == 60
    assert [warning.filename for warning in caught] == [__file__]
