"""One absurd row, or a few extreme ones, change nothing for all others, and are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from powersketch import GaussianSketch, PolynomialSketch
from powersketch.exceptions import OutlierWarning
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.pilot import capped, central_row, outlying
from tests.feature_maps.cases import ESTIMATORS, relative_error

ROW = 3
# By estimators, on rows of squared norm one: their kernels vary there.
PARAMETERS: dict[str, dict[str, Any]] = {"GaussianSketch": {"gamma": 0.5}}


def rows() -> NDArray[np.float64]:
    return np.random.default_rng(0).standard_normal((60, 12)) / np.sqrt(12)


def with_outlier(kind: str) -> NDArray[np.float64]:
    X = rows()
    if kind == "times 1e10":
        X[ROW] *= 1e10
    else:
        X[ROW, 0] = float(kind)
    return X


def sketch_of(estimator: type[FeatureMap]) -> Any:
    own = PARAMETERS.get(estimator.__name__, {})
    return estimator(n_components=256, random_state=0, **own)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["1e20", "9.97e36", "-9999", "times 1e10"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_ordinary_rows_do_as_well_as_without_it(
    estimator: type[FeatureMap], kind: str, container: Any
) -> None:
    clean = np.delete(rows(), ROW, axis=0)
    alone, beside = sketch_of(estimator), sketch_of(estimator)
    alone.fit(container(clean))
    with pytest.warns(OutlierWarning, match=rf"row {ROW} \(") as caught:
        beside.fit(container(with_outlier(kind)))
    assert caught[0].filename == __file__
    K = alone.kernel_(clean)
    expected = relative_error(alone.transform(clean), K)
    assert relative_error(beside.transform(clean), K) <= 2.0 * expected + 1e-12


def test_gamma_from_the_data_is_that_of_the_ordinary_rows() -> None:
    clean = GaussianSketch("scale").fit(np.delete(rows(), ROW, axis=0))
    with pytest.warns(OutlierWarning):
        sketch = GaussianSketch("scale").fit(with_outlier("1e20"))
    assert sketch.gamma_ == clean.gamma_


@pytest.mark.parametrize("factor", [5.0, 30.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_a_few_long_rows_do_not_take_the_features_of_others(factor: float, shift: float) -> None:
    """The kernel of degree 4 of such rows is up to 1e16 times as large as that of others."""
    X = np.random.default_rng(0).standard_normal((1000, 20)) + shift
    options: dict[str, Any] = {"gamma": 0.05, "coef0": 1.0, "n_components": 256, "random_state": 0}
    ordinary = X[4:].copy()
    sketch = PolynomialSketch(4, **options).fit(X)
    expected = relative_error(sketch.transform(ordinary), sketch.kernel_(ordinary))
    X[:4] *= factor
    sketch = PolynomialSketch(4, **options).fit(X)
    assert relative_error(sketch.transform(ordinary), sketch.kernel_(ordinary)) <= 1.1 * expected


@pytest.mark.parametrize("count", [1, 4, 5, 100])
def test_no_outliers_in_plain_rows(count: int) -> None:
    GaussianSketch(n_components=8, random_state=0).fit(rows()[:count])
    GaussianSketch(n_components=8, random_state=0).fit(np.ones((count, 3)))


def test_many_rows_of_another_size_are_no_outliers() -> None:
    X = rows()
    X[::3] *= 1e6
    GaussianSketch(n_components=8, random_state=0).fit(X)


class TestParts:
    def test_a_typical_size_is_the_upper_quartile_of_what_is_there(self) -> None:
        sizes = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
        assert outlying(sizes, 1.0).tolist() == [7]
        assert outlying(np.zeros(4), 1.0).size == 0
        assert outlying(np.array([1.0, 1.0, 1.0, 1.0, np.inf]), 10.0).tolist() == [4]

    def test_the_centre_is_the_mean_of_plain_rows(self) -> None:
        X = rows()
        np.testing.assert_allclose(central_row(X), X.mean(axis=0), rtol=1e-12, atol=1e-15)

    def test_no_row_drags_the_centre_far(self) -> None:
        X = rows()
        for size in (1e2, 1e8, 1e200):
            X[ROW] = size
            assert np.linalg.norm(central_row(X) - X[4:].mean(axis=0)) < 0.2

    def test_capped_values_keep_their_order_and_have_small_shares(self) -> None:
        values = np.array([1.0] * 100 + [1e3, 1e30, 2.0])
        sizes = np.sqrt(values)
        limited = capped(values, sizes)
        assert limited.max() / limited.sum() <= 4 / len(values) * (1 + 1e-12)
        np.testing.assert_array_equal(limited[:100], 1.0)
        np.testing.assert_array_equal(capped(np.zeros(5), np.zeros(5)), 0.0)

    def test_steep_weights_of_plain_rows_stay_as_they_are(self) -> None:
        """Lengths that differ by a third give weights that differ by 1e7 at degree 32."""
        lengths = np.linspace(1.0, 1.3, 50)
        np.testing.assert_array_equal(capped(lengths**64, lengths), lengths**64)
