"""Certificates cover the diagonal, too, where a map does not keep norms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import GaussianSketch, LeverageNystroem, PolynomialSketch
from powersketch.accuracy import certify
from powersketch.accuracy.data_rows import DataRows
from powersketch.accuracy.growth import grown_size
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample, row_sample
from powersketch.kernels import Gaussian, Kernel, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Projected, random_rows, relative_error


@dataclass(frozen=True, eq=False)
class WrongNorms:
    """The exact map of ⟨x, y⟩ with one more feature of each row's own: only the diagonal is off."""

    factor: float
    kernel_: Kernel = field(default_factory=lambda: Polynomial(degree=1))

    def transform(self, X: Any) -> NDArray[Any]:
        # Each row has a column of its own, found by its last entry, its number.
        own = np.zeros((len(X), 1000))
        own[np.arange(len(X)), np.round(X[:, -1]).astype(int)] = self.factor
        return np.hstack((X, own))


@dataclass(frozen=True, eq=False)
class KeptNorms:
    """Random projections of the rows, scaled to the rows' own norms."""

    projected: Projected

    @property
    def kernel_(self) -> Kernel:
        return self.projected.kernel_

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        Z = self.projected.transform(X)
        Z *= (np.linalg.norm(X, axis=1) / np.linalg.norm(Z, axis=1))[:, np.newaxis]
        return Z


def all_entries(sketch: Any, X: NDArray[Any]) -> float:
    Z, K = sketch.transform(X).astype(np.float64), sketch.kernel_(X)
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def spread_out(count: int) -> NDArray[np.float64]:
    """Return rows whose kernel matrix is the identity, but for a few near-duplicates."""
    generator = np.random.default_rng(0)
    X = 3.0 * generator.standard_normal((count, 12))
    X[-5:] = X[:5] + 1e-3 * generator.standard_normal((5, 12))
    return X


class TestFigures:
    def test_wrong_diagonal_is_seen(self) -> None:
        X = np.hstack((random_rows("equal", 60, 5, 0), np.arange(60.0)[:, np.newaxis] * 1.0))
        certificate = certify(WrongNorms(20.0), X)
        K = X @ X.T
        assert certificate.frobenius.value < 1e-12
        expected = 400.0 * np.sqrt(60) / np.linalg.norm(np.diag(K))
        assert certificate.diagonal.value == pytest.approx(expected)
        assert certificate.whole.value == pytest.approx(400 * np.sqrt(60) / np.linalg.norm(K))
        assert certificate.bound == certificate.whole.high
        assert certificate.whole.exact

    def test_exact_diagonal_adds_nothing(self) -> None:
        X = random_rows("equal", 200, 6, 0)
        sketch = GaussianSketch(0.2, n_components=64, random_state=0).fit(X)
        certificate = certify(sketch, X)
        assert certificate.diagonal.value < 1e-14
        assert certificate.whole.value == pytest.approx(all_entries(sketch, X))
        assert certificate.bound == certificate.frobenius.high

    def test_nystroem(self) -> None:
        X = spread_out(200)
        sketch = LeverageNystroem(Gaussian(0.5), n_components=100, random_state=0).fit(X)
        certificate = certify(sketch, X)
        assert certificate.whole.value == pytest.approx(all_entries(sketch, X))
        assert certificate.whole.value > 0.5

    def test_pairs_far_smaller_than_the_diagonal_are_not_lost(self) -> None:
        """Their squares would underflow beside the diagonal, and any error would be none."""
        X = np.eye(4) * 1e150
        X[0, 1] = X[2, 3] = 1.0
        certificate = certify(Projected(4, 0), X * 1e-50)
        assert certificate.frobenius.value == pytest.approx(1.0)

    def test_says_what_it_covers(self) -> None:
        certificate = certify(Projected(6, 20), random_rows("equal", 80, 6, 0))
        text = "all entries, the diagonal included, of the matrix of these 80 rows"
        assert certificate.covers == text
        assert repr(certificate).splitlines()[-1] == f"  covers {text}"
        assert certificate.to_dict()["covers"] == text
        assert set(certificate.to_dict()["whole"]) == {"value", "low", "high"}


class TestSize:
    @pytest.mark.parametrize("count", [60, 300])
    def test_eps_means_the_whole_matrix(self, count: int) -> None:
        X = spread_out(count)
        sketch = LeverageNystroem(Gaussian(0.5), n_components="auto", eps=0.05, random_state=0)
        sketch.fit(X)
        assert sketch.certificate_.bound <= 0.05
        assert all_entries(sketch, X) <= 0.05
        assert relative_error(sketch, X) <= 0.05

    def test_many_rows_without_hope_are_refused(self) -> None:
        sketch = LeverageNystroem(Gaussian(0.5), n_components="auto", eps=0.05, random_state=0)
        with pytest.raises(ValueError, match=r"eps=0\.05 is out of reach"):
            sketch.fit(spread_out(500))

    @pytest.mark.parametrize(
        "sketch",
        [
            PolynomialSketch(3, norm_preserving=False),
            LeverageNystroem(Gaussian(0.3)),
            LeverageNystroem(Gaussian(2.0)),
        ],
        ids=["literal", "nystroem", "narrow"],
    )
    def test_is_kept_on_further_rows(self, sketch: Any) -> None:
        X, further = np.random.default_rng(0).random((2, 600, 4))
        sketch.set_params(n_components="auto", eps=0.1, random_state=0).fit(X)
        assert sketch.certificate_.for_new_rows
        assert "further rows" in sketch.certificate_.covers
        assert all_entries(sketch, further) <= 0.1
        assert relative_error(sketch, further) <= 0.1


class TestCoverage:
    """Of 100 intervals of 99 %, correct ones hold at least 96 but for a risk of 0.4 %."""

    @pytest.mark.parametrize("keep", [False, True])
    def test_of_samples(self, keep: bool) -> None:
        held = 0
        for trial in range(100):
            X = random_rows(("equal", "clustered", "heavy", "low-rank")[trial % 4], 400, 6, trial)
            X /= np.abs(X).max()
            sketch: Any = Projected(6, 12, trial)
            if keep:
                sketch = KeptNorms(sketch)
            sample = row_sample(sketch, DataRows.of(X), RandomStreams(trial), 150)
            held += all_entries(sketch, X) in PairErrors.measure(sketch, sample).whole(0.99)
        assert held >= 96

    @pytest.mark.parametrize("keep", [False, True])
    def test_of_new_rows(self, keep: bool) -> None:
        """Matrices of as many further rows have errors that vary themselves: the bound holds."""
        sketch: Any = Projected(5, 30)
        if keep:
            sketch = KeptNorms(sketch)
        everything = random_rows("equal", 3000, 5, 99)
        truth, held = all_entries(sketch, everything), 0
        for trial in range(100):
            rows = DataRows.of(random_rows("equal", 150, 5, trial))
            sample = RowSample(rows, np.ones(150), for_new_rows=True)
            held += truth <= PairErrors.measure(sketch, sample).covering(0.99).high
        assert held >= 96

    def test_of_sizes(self) -> None:
        """Maps that keep eps with 99 %, as they should, miss 3 of 20 with a risk of 0.1 %."""
        held = 0
        for seed in range(20):
            X, further = np.random.default_rng(seed).random((2, 400, 3))
            sketch = LeverageNystroem(
                Gaussian(3.0), n_components="auto", eps=0.2, scores="uniform", random_state=seed
            ).fit(X)
            held += max(all_entries(sketch, further), relative_error(sketch, further)) <= 0.2
        assert held >= 18


def test_size_of_a_map_with_exact_norms_follows_from_its_pairs() -> None:
    X = random_rows("equal", 800, 8, 0)
    size, certificate = grown_size(
        lambda size: KeptNorms(Projected(8, size)), X, 0.2, RandomStreams(0, "test")
    )
    assert certificate.bound == certificate.frobenius.high
    assert size == 158


def test_a_wrong_diagonal_of_fresh_rows_only_makes_the_map_larger() -> None:
    """The search measures some rows, and is confirmed by others."""
    X = np.hstack((random_rows("equal", 800, 8, 0), np.arange(800.0)[:, np.newaxis] / 800.0))
    searched: list[NDArray[Any]] = []

    class Drawn(KeptNorms):
        def transform(self, X: NDArray[Any]) -> NDArray[Any]:
            Z = super().transform(X)
            if not searched:
                searched.append(X)
            if np.array_equal(X, searched[0]) or self.projected.size > 200:
                return Z
            own = np.zeros((len(X), 800))
            own[np.arange(len(X)), np.round(800.0 * X[:, -1]).astype(int)] = 30.0
            return np.hstack((Z, own))

    size, certificate = grown_size(
        lambda size: Drawn(Projected(9, size)), X, 0.3, RandomStreams(0, "test")
    )
    assert size > 200
    assert certificate.bound <= 0.3
