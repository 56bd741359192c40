"""Compressed maps: main directions of a larger sketch, and what the compression promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import PolynomialSketch
from powersketch.feature_maps.maps.composed import principal_directions
from tests.feature_maps.cases import digits, relative_error, squared_lengths, uncentred, unit_rows


def compressed(n_components: int = 100, **parameters: Any) -> PolynomialSketch:
    options = {"compress_from": 4 * n_components, "random_state": 0, **parameters}
    return PolynomialSketch(n_components=n_components, **options)


def projection(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = directions @ directions.T
    return result


class TestDirections:
    @pytest.mark.parametrize("shape", [(60, 20), (20, 60), (30, 30)])
    def test_are_those_of_the_singular_value_decomposition(self, shape: tuple[int, int]) -> None:
        F = np.random.default_rng(0).normal(size=shape)
        V = principal_directions(F, 7)
        np.testing.assert_allclose(V.T @ V, np.eye(7), atol=1e-12)
        right = np.linalg.svd(F)[2][:7].T
        np.testing.assert_allclose(projection(V), projection(right), atol=1e-10)

    @pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
    def test_scale_does_not_matter(self, scale: float) -> None:
        F = np.random.default_rng(0).normal(size=(20, 30))
        expected = projection(principal_directions(F, 5))
        np.testing.assert_allclose(
            projection(principal_directions(F * scale, 5)), expected, atol=1e-12
        )

    @pytest.mark.parametrize("shape", [(50, 20), (20, 50)])
    def test_there_are_no_more_than_the_rank(self, shape: tuple[int, int]) -> None:
        generator = np.random.default_rng(0)
        F = generator.normal(size=(shape[0], 3)) @ generator.normal(size=(3, shape[1]))
        V = principal_directions(F, 10)
        assert V.shape == (shape[1], 3)
        np.testing.assert_allclose(F @ projection(V), F, atol=1e-10)

    def test_zeros_have_none(self) -> None:
        assert principal_directions(np.zeros((4, 6), dtype=np.float32), 3).shape == (6, 0)


class TestFeatures:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_are_the_inner_features_projected(self, dtype: Any) -> None:
        """With as many rows as those of fit the directions can be found again."""
        X = uncentred(200, 40, dtype)
        Z = compressed(degree=3, n_components=20, compress_from=100).fit_transform(X)
        W = PolynomialSketch(3, n_components=100, random_state=0).fit_transform(X)
        W = W.astype(np.float64)
        expected = W @ projection(principal_directions(W, 20)) @ W.T
        tolerance = 1e-12 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(
            Z.astype(np.float64) @ Z.T.astype(np.float64), expected, atol=tolerance
        )

    def test_more_columns_than_a_panel(self) -> None:
        X = uncentred(600, 40)
        Z = compressed(degree=3, n_components=300, compress_from=600).fit_transform(X)
        W = PolynomialSketch(3, n_components=600, random_state=0).fit_transform(X)
        expected = W @ projection(principal_directions(W, 300)) @ W.T
        np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-10)

    def test_no_row_becomes_longer(self) -> None:
        X = uncentred(200, 40)
        sketch = compressed(degree=3, n_components=20)
        norms = squared_lengths(sketch.fit_transform(X))
        assert (norms <= sketch.kernel_.diagonal(X) * (1 + 1e-12)).all()

    @pytest.mark.parametrize("degree", [2, 3, 5])
    def test_the_error_on_fresh_rows_is_smaller(self, degree: int) -> None:
        """Below 0.65 of the plain sketch's error; measured are 0.45 to 0.48."""
        X = unit_rows(digits(1400)).astype(np.float32)
        seen, fresh = X[:900], X[900:]
        errors = {}
        for compress_from in (None, 512):
            sketch = PolynomialSketch(
                degree, n_components=128, compress_from=compress_from, random_state=0
            ).fit(seen)
            errors[compress_from] = relative_error(sketch.transform(fresh), sketch.kernel_(fresh))
        assert errors[512] < 0.65 * errors[None]

    def test_a_larger_first_stage_helps(self) -> None:
        X = unit_rows(digits(1400)).astype(np.float32)
        errors = []
        for inner in (128, 256, 1024):
            sketch = compressed(degree=3, n_components=128, compress_from=inner).fit(X[:900])
            fresh = X[900:]
            errors.append(relative_error(sketch.transform(fresh), sketch.kernel_(fresh)))
        assert errors == sorted(errors, reverse=True)

    def test_columns_beyond_the_rank_are_zero(self) -> None:
        X = uncentred(6, 40)
        Z = compressed(degree=3, n_components=20).fit_transform(X)
        assert Z[:, :6].any(axis=0).all()
        assert not Z[:, 6:].any()

    def test_zero_rows_only(self) -> None:
        sketch = compressed(degree=3, n_components=20).fit(np.zeros((5, 40)))
        assert not sketch.transform(np.zeros((3, 40))).any()

    def test_nothing_is_compressed_where_all_monomials_fit(self) -> None:
        X = uncentred(50, 4)
        sketch = compressed(degree=2, n_components=10)
        Z = sketch.fit_transform(X)
        assert sketch.expansion_ == "exact"
        np.testing.assert_allclose(Z @ Z.T, sketch.kernel_(X), atol=1e-14)

    @pytest.mark.parametrize("method", ["power", "ctr"])
    def test_any_method_can_be_the_first_stage(self, method: str) -> None:
        X = unit_rows(digits(700)).astype(np.float32)
        sketch = compressed(degree=4, n_components=100, method=method).fit(X)
        assert relative_error(sketch.transform(X), sketch.kernel_(X)) < 0.1


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"compress_from": 99}, ValueError, "from 100 to .*n_components=100"),
            ({"compress_from": 400.0}, TypeError, "compress_from=400.0 is a float"),
            ({"compress_from": True}, TypeError, "compress_from=True is a bool"),
            ({"internal_components": 256}, ValueError, "smaller than compress_from=400"),
        ],
        ids=str,
    )
    def test_bad_parameters(
        self, parameters: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            compressed(**parameters).fit(uncentred(20, 40))

    def test_the_size_is_not_chosen(self) -> None:
        sketch = PolynomialSketch(n_components="auto", eps=0.1, compress_from=400)
        with pytest.raises(ValueError, match="needs n_components as an integer, not 'auto'"):
            sketch.fit(uncentred(20, 40))

    def test_a_failed_fit_leaves_the_last_one(self) -> None:
        X = uncentred(30, 40)
        sketch = compressed(n_components=10).fit(X)
        Z = sketch.transform(X)
        with pytest.raises(ValueError, match="compress_from=3"):
            sketch.set_params(compress_from=3).fit(X)
        np.testing.assert_array_equal(sketch.transform(X), Z)
