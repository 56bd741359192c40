"""Parameters as scikit-learn reads and writes them, and gamma from the data."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from powersketch import GaussianSketch, LeverageNystroem, solve_kernel_system
from powersketch.kernels import DotProduct, Gaussian, Kernel, Polynomial, as_kernel, resolved_gamma
from tests.kernels.kernel_cases import KERNELS, each_dtype, each_kernel, points

each_rule = pytest.mark.parametrize("rule", ["scale", "median"])
each_layout = pytest.mark.parametrize(
    "to_layout", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix]
)


def expected(rule: str, X: NDArray[Any]) -> float:
    X = X.astype(np.float64)
    return 1.0 / (X.shape[1] * X.var() if rule == "scale" else float(np.median(pdist(X)) ** 2))


@each_rule
class TestRules:
    @each_dtype
    @each_layout
    def test_value(self, rule: str, dtype: Any, to_layout: Callable[[Any], Any]) -> None:
        X = points(63, 11).astype(dtype) + dtype(0.5) * (points(63, 11) != 0.0)
        gamma = resolved_gamma(rule, to_layout(X))
        assert gamma == pytest.approx(expected(rule, X), rel=1e-12)

    def test_entries_may_be_stored_in_parts(self, rule: str) -> None:
        X = points(20)
        whole = sparse.csr_array(X)
        indptr, indices, data = 2 * whole.indptr, np.repeat(whole.indices, 2), whole.data
        parts = sparse.csr_array((np.repeat(0.5 * data, 2), indices, indptr), X.shape)
        before = parts.nnz
        assert resolved_gamma(rule, parts) == resolved_gamma(rule, whole)
        assert parts.nnz == before

    def test_numbers_stay(self, rule: str) -> None:
        del rule
        assert resolved_gamma(3, points(2)) == 3.0

    @pytest.mark.parametrize("rows", [1, 4])
    def test_nothing_to_measure(self, rule: str, rows: int) -> None:
        assert resolved_gamma(rule, np.full((rows, 3), 2.0)) == 1.0

    @pytest.mark.parametrize("factor", [1e-200, 1e200])
    def test_beyond_float64(self, rule: str, factor: float) -> None:
        with pytest.raises(ValueError, match=rf"gamma='{rule}' is 1 / .* float64 cannot hold: sc"):
            resolved_gamma(rule, factor * points(20))

    @pytest.mark.parametrize(
        "kernel", [Gaussian("scale"), Polynomial(2, "scale", 1.0), DotProduct("exp", "scale")]
    )
    def test_kernels_resolve(self, rule: str, kernel: Kernel) -> None:
        X = points(30)
        kernel.set_params(gamma=rule)
        resolved = kernel.resolve(X.tolist())
        number = resolved_gamma(rule, X)
        assert type(resolved) is type(kernel)
        assert resolved.get_params() == kernel.get_params() | {"gamma": number}
        assert repr(resolved.resolve(X)) == repr(resolved)
        for values in (
            lambda: kernel(X),
            lambda: kernel.product(X, X[:, 0]),
            lambda: kernel.columns(X)(X, X.dtype),
            kernel.power_series,
        ):
            with pytest.raises(ValueError, match=rf"gamma='{rule}' is resolved .* kernel.resolve"):
                values()


class TestMedian:
    @each_layout
    def test_no_outlier_moves_it(self, to_layout: Callable[[Any], Any]) -> None:
        X = points(100)
        clean = resolved_gamma("median", to_layout(X))
        X[[3, 50, 77]] = [[1e300], [1e20], [-1e5]]
        assert resolved_gamma("median", to_layout(X)) == pytest.approx(clean, rel=0.2)

    def test_repeated_rows_do_not_count(self) -> None:
        X = np.repeat([[0.0], [0.0], [0.0], [2.0]], 5, axis=0)
        assert resolved_gamma("median", X) == 0.25

    @pytest.mark.parametrize("shape", [(3000, 4), (40, 200_000)])
    def test_of_some_rows_if_there_are_many_or_long_ones(self, shape: tuple[int, int]) -> None:
        X = np.random.default_rng(0).standard_normal(shape)
        gamma = resolved_gamma("median", X)
        assert gamma == pytest.approx(1.0 / (2.0 * shape[1]), rel=0.3)
        if shape[0] == 3000:
            assert gamma == resolved_gamma("median", X[np.linspace(0, 2999, 256).astype(int)])

    def test_distances_far_from_the_origin(self) -> None:
        X = points(30)
        gamma = resolved_gamma("median", X + 1e6)
        assert math.isclose(gamma, resolved_gamma("median", X), rel_tol=1e-8)


each_kind = pytest.mark.parametrize("kind", [Gaussian, Polynomial, DotProduct])


@each_kind
def test_other_rules_are_refused(kind: type[Gaussian | Polynomial | DotProduct]) -> None:
    with pytest.raises(ValueError, match="gamma='sqrt' is unknown; use one of 'scale', 'median'"):
        kind(gamma="sqrt")


@each_kind
def test_a_gamma_that_is_chosen_by_errors_is_refused_without_targets(
    kind: type[Gaussian | Polynomial | DotProduct],
) -> None:
    X, kernel = points(20), kind(gamma="auto")
    chosen = "gamma='auto' is chosen by the errors of predictions.*use 'scale' or 'median'"
    for use in (
        kernel.resolve,
        lambda X: as_kernel(kernel, X),
        lambda X: LeverageNystroem(kernel, n_components=5).fit(X),
        lambda X: solve_kernel_system(X, X[:, 0], kernel, alpha=1.0),
        lambda X: GaussianSketch("auto").fit(X),
    ):
        with pytest.raises(ValueError, match=chosen):
            use(X)
    with pytest.raises(ValueError, match="gamma='auto'"):
        kernel(X)


class ExactRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression with a kernel as a parameter."""

    def __init__(self, kernel: Kernel | str = "gaussian", alpha: float = 1e-3) -> None:
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> ExactRidge:
        self.kernel_ = as_kernel(self.kernel, X)
        self.ridge_ = KernelRidge(alpha=self.alpha, kernel="precomputed").fit(self.kernel_(X), y)
        self.X_ = X
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        predictions: NDArray[np.float64] = self.ridge_.predict(self.kernel_(X, self.X_))
        return predictions


class TestParameters:
    @each_kernel
    def test_clones_are_equal_and_independent(self, kernel: Kernel) -> None:
        twin = clone(kernel)
        assert twin is not kernel
        assert repr(twin) == repr(kernel)
        np.testing.assert_array_equal(twin(points(5)), kernel(points(5)))
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(kernel))(points(5)), twin(points(5))
        )

    @each_kernel
    def test_set_to_what_they_are(self, kernel: Kernel) -> None:
        twin = clone(kernel)
        before = repr(twin)
        assert twin.set_params(**kernel.get_params()) is twin
        assert repr(twin) == before

    def test_in_place_with_all_that_follows(self) -> None:
        kernel = DotProduct("exp")
        kernel.set_params(series=[0.0, 3.0], gamma=2)
        assert kernel.get_params() == {"series": [0.0, 3.0], "gamma": 2.0}
        np.testing.assert_array_equal(kernel([[1.0]], [[5.0]]), [[30.0]])

    @pytest.mark.parametrize(
        "wrong", [{"degree": 3, "gamma": -1.0}, {"degree": 3, "order": 1}, {"gamma": "sqrt"}]
    )
    def test_nothing_changes_if_one_is_refused(self, wrong: dict[str, Any]) -> None:
        kernel = Polynomial(degree=2, coef0=1.0)
        with pytest.raises(ValueError, match=r"out of range|has no order|gamma='sqrt' is unknown"):
            kernel.set_params(**wrong)
        assert kernel == Polynomial(degree=2, coef0=1.0)

    def test_names_of_parameters(self) -> None:
        for kernel in KERNELS:
            assert all(f"{name}=" in repr(kernel) for name in kernel.get_params(deep=False))

    def test_what_is_fitted_does_not_change(self) -> None:
        X = points(20)
        nystroem = LeverageNystroem(Gaussian(), n_components=5, random_state=0).fit(X)
        before = nystroem.transform(X)
        nystroem.set_params(kernel__gamma=3.0)
        np.testing.assert_array_equal(nystroem.transform(X), before)
        assert nystroem.kernel_ == Gaussian()

    def test_searched_over_inside_an_estimator(self) -> None:
        X = np.random.default_rng(0).uniform(-1.0, 1.0, (80, 2))
        y = np.sin(4.0 * X[:, 0])
        grid = {"kernel__gamma": [1e-4, 2.0, "median", 1e4]}
        search = GridSearchCV(ExactRidge(Gaussian()), grid, cv=3).fit(X, y)
        assert search.best_params_["kernel__gamma"] in (2.0, "median")
        assert search.best_score_ > 0.9
        # The kernel that was given is left as it is.
        assert search.estimator.kernel == Gaussian()

    def test_searched_over_whole_kernels(self) -> None:
        X = np.random.default_rng(0).standard_normal((60, 3))
        kernels = ["linear", Polynomial(degree=2, coef0=1.0)]
        search = GridSearchCV(ExactRidge(), {"kernel": kernels}, cv=3).fit(X, X[:, 0] * X[:, 1])
        assert search.best_params_["kernel"] == kernels[1]
