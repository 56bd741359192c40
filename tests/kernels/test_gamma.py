"""Gamma from the data: by the variance of the entries, or by the median distance of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import pdist

from powersketch.kernels import DotProduct, Gaussian, Kernel, Polynomial, resolved_gamma
from tests.kernels.kernel_cases import each_dtype, points

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
        assert resolved.resolve(X) is resolved
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


@pytest.mark.parametrize("kernel", [Gaussian, Polynomial, DotProduct])
def test_other_rules_are_refused(kernel: type[Gaussian | Polynomial | DotProduct]) -> None:
    with pytest.raises(ValueError, match="gamma='auto' is unknown; use one of 'scale', 'median'"):
        kernel(gamma="auto")
