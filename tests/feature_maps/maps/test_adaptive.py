"""PolynomialSketch with monomials drawn by leverage scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import PolynomialSketch
from powersketch.powers import adaptive as draws
from tests.feature_maps.cases import digits, squared_lengths, uncentred


def relative_error(sketch: Any, X: NDArray[Any]) -> float:
    Z, K = sketch.transform(X), sketch.kernel_(X)
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def adaptive(degree: int = 3, **parameters: Any) -> PolynomialSketch:
    return PolynomialSketch(degree, **{"method": "adaptive", "random_state": 0, **parameters})


FIXED: dict[str, list[float]] = {
    "exact": [
        1.1674378287716967,
        -1.0901031226601692,
        8.284282545768232,
        7.571427222322747,
        -0.08467820462016355,
        8.237837514885602,
    ],
    "sketched": [
        1.2141360063467612,
        -1.1085611263255764,
        8.640846240279949,
        6.953199472883239,
        -0.09570145458690957,
        8.405523259389819,
    ],
    "rows": [
        1.2917074776285031,
        3.562902756111922,
        0.260072218236792,
        8.921787022610552,
        10.11669487581458,
        0.0,
    ],
}


class TestFeatures:
    @pytest.mark.parametrize("coef0", [0.0, 0.7])
    def test_are_weighted_monomials(self, coef0: float) -> None:
        X = uncentred(30, 12)
        sketch = adaptive(coef0=coef0, gamma=0.5, n_components=60, norm_preserving=False).fit(X)
        monomials = sketch._row_map.monomials
        augmented = np.sqrt(0.5) * X
        if coef0:
            augmented = np.column_stack([augmented, np.full(30, np.sqrt(coef0))])
        values, _ = monomials.values(augmented[:, monomials.coordinates])
        Z = sketch.transform(X)
        np.testing.assert_allclose(Z[:, : monomials.size], values, rtol=1e-12)
        assert not Z[:, monomials.size :].any()

    def test_norms_are_preserved(self) -> None:
        X = uncentred(30, 12)
        Z = adaptive(n_components=60).fit_transform(X)
        literal = adaptive(n_components=60, norm_preserving=False).fit_transform(X)
        np.testing.assert_allclose(squared_lengths(Z), squared_lengths(X) ** 3, rtol=1e-13)
        factors = np.sqrt(squared_lengths(Z) / squared_lengths(literal))
        np.testing.assert_allclose(Z, literal * factors[:, None], rtol=1e-12)

    def test_rows_without_a_monomial_keep_their_norm(self) -> None:
        """Rows of one coordinate that fit has never seen: the same features for the same rows."""
        X = np.zeros((20, 30))
        X[:, :29] = uncentred(20, 29)
        sketch = adaptive(n_components=20).fit(X)
        Z = sketch.transform(np.eye(30)[[29, 29]] * [[1.0], [2.0]])
        np.testing.assert_allclose(squared_lengths(Z), [1.0, 64.0], rtol=1e-13)
        np.testing.assert_array_equal(sketch.transform(np.eye(30)[[29]])[0], Z[0])

    def test_exact_where_all_monomials_fit(self) -> None:
        X = uncentred(30, 4)
        sketch = adaptive(degree=2, n_components=10).fit(X)
        assert sketch.expansion_ == "exact"
        assert relative_error(sketch, X) < 1e-14

    def test_unbiased_over_seeds(self) -> None:
        """The mean over 200 seeds, of rows outside of fit, within 4.5 standard errors."""
        X, others = uncentred(12, 5), uncentred(2, 5, seed=8)
        found = []
        for seed in range(200):
            sketch = adaptive(2, n_components=6, norm_preserving=False, random_state=seed)
            Z = sketch.fit(X).transform(others)
            found.append((Z @ Z.T)[np.triu_indices(2)])
        expected = ((others @ others.T) ** 2)[np.triu_indices(2)]
        errors = np.std(found, axis=0) / np.sqrt(len(found))
        assert np.all(np.abs(np.mean(found, axis=0) - expected) < 4.5 * errors)


class TestAccuracy:
    def test_digits(self) -> None:
        """Preserved norms lower the error, more components do, and so do scores of the data."""
        X = digits(400)
        X = X / np.sqrt(squared_lengths(X))[:, None]
        fit, others = X[:200], X[200:]

        def error(**parameters: Any) -> float:
            sketches = [adaptive(2, random_state=seed, **parameters) for seed in range(3)]
            return float(np.median([relative_error(s.fit(fit), others) for s in sketches]))

        usual = error(n_components=300)
        assert usual < 0.8 * error(n_components=300, norm_preserving=False)
        assert error(n_components=1200) < 0.6 * usual
        oblivious = PolynomialSketch(2, n_components=300, expansion="none", random_state=0)
        assert usual < 0.7 * relative_error(oblivious.fit(fit), others)

    def test_many_sparse_columns(self) -> None:
        """Only the coordinates that monomials need are ever dense."""
        X = sp.random_array((300, 100_000), density=2e-4, rng=0, format="csr")
        X.data[:] = 1.0
        X = sp.csr_array(X[X.sum(axis=1) > 0])
        sketch = adaptive(2, coef0=1.0, n_components=64).fit(X)
        Z = sketch.transform(X)
        assert np.isfinite(Z).all()
        np.testing.assert_array_equal(Z[:50], sketch.transform(X[:50].toarray()))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_degree_1000(self, dtype: Any) -> None:
        X = uncentred(40, 10, dtype)
        X /= np.sqrt(squared_lengths(X))[:, None].astype(dtype)
        Z = adaptive(1000, n_components=30).fit_transform(X)
        assert Z.dtype == dtype
        assert np.isfinite(Z).all()
        lengths = squared_lengths(Z)
        assert np.count_nonzero(lengths) > 10
        expected = squared_lengths(X.astype(np.float64)) ** 1000
        present = lengths > 0
        np.testing.assert_allclose(lengths[present], expected[present], rtol=1e-5)

    @pytest.mark.parametrize("draw", FIXED)
    def test_fixed_numbers(self, draw: str, monkeypatch: pytest.MonkeyPatch) -> None:
        X = np.array([[1.0, 0.5, -0.25, 2.0], [0.5, 0.75, 1.0, 1.25], [2.0, -1.0, 1.0, 0.5]])
        monkeypatch.setattr(draws, "affordable_draw", lambda *_: draw)
        sketch = adaptive(coef0=0.5, n_components=6, random_state=42)
        np.testing.assert_allclose(sketch.fit_transform(X)[0], FIXED[draw], rtol=1e-12)


class TestParameters:
    def test_mean_is_refused(self) -> None:
        with pytest.raises(
            ValueError, match=r"expansion='mean' has no effect with method='adaptive'.*'auto'"
        ):
            adaptive(expansion="mean").fit(uncentred(10, 5))

    @pytest.mark.parametrize("expansion", ["auto", "none"])
    def test_the_others_mean_none(self, expansion: str) -> None:
        sketch = adaptive(expansion=expansion, n_components=20).fit(uncentred(20, 8))
        assert sketch.expansion_ == "none"

    def test_overflow_of_the_literal_sketch(self) -> None:
        """Only a weight beyond all measure does that."""
        X = uncentred(20, 8)
        sketch = adaptive(n_components=10, norm_preserving=False).fit(X)
        monomials = sketch._row_map.monomials
        heavy = replace(monomials, weights=monomials.weights.times_power_of_two(np.int64(900)))
        row_map = replace(sketch._row_map, monomials=heavy)
        with pytest.raises(ValueError, match="features overflow float64"):
            row_map.write(2.0**100 * X, np.empty((20, 10)), 1)
