"""Nothing is promised for further rows where a few rows decide the error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from powersketch import GaussianSketch, LeverageNystroem, PolynomialSketch
from powersketch.accuracy.data_rows import DataRows
from powersketch.accuracy.growth import grown_size
from powersketch.accuracy.heavy_rows import heavy_diagonal, heavy_pairs, light_rows
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample
from powersketch.exceptions import OutlierWarning
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Projected, random_rows, relative_error


def with_extremes(count: int, share: float, factor: float, seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    X = generator.random((count, 30))
    X[generator.random(count) < share] *= factor
    return X


ORDINARY = {
    "digits": load_digits().data[:1000] / 16.0,
    "gaussian": np.random.default_rng(0).normal(size=(1000, 12)),
    "uniform": np.random.default_rng(1).random((1000, 10)),
    "sparse": np.where(np.random.default_rng(2).random((1000, 40)) < 0.2, 1.0, 0.0)
    * np.random.default_rng(3).normal(size=(1000, 40)),
    "log-normal": np.random.default_rng(4).lognormal(0.0, 0.5, size=(1000, 8)),
    "clustered": random_rows("clustered", 1000, 6, 0),
}


class TestCheck:
    @pytest.mark.parametrize("name", ORDINARY)
    @pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3), Gaussian(0.05)], ids=str)
    def test_ordinary_rows_are_not_heavy(self, name: str, kernel: Any) -> None:
        rows = DataRows.of(ORDINARY[name])
        assert not heavy_diagonal(kernel.diagonal(rows.matrix), 500)
        sketch = PolynomialSketch(2, n_components=64, random_state=0).fit(rows.matrix)
        sample = RowSample(rows.take(np.arange(500)), np.ones(500), for_new_rows=True)
        assert not heavy_pairs(PairErrors.measure(sketch, sample))

    def test_one_extreme_row(self) -> None:
        diagonal = np.ones(1000)
        diagonal[7] = 1e4
        text = "one row makes up half of the sum of k(x, x) over 1000 rows"
        assert heavy_diagonal(diagonal, 500) == text

    def test_one_extreme_row_among_measured_pairs(self) -> None:
        X = random_rows("equal", 100, 5, 0)
        X[7] *= 1e3
        sample = RowSample(DataRows.of(X), np.ones(100), for_new_rows=True)
        # A pair counts for both of its rows.
        text = "2 rows make up half of the kernel's squares over 100 rows"
        assert heavy_pairs(PairErrors.measure(Projected(5, 20), sample)) == text

    def test_rows_that_a_sample_holds_too_few_of(self) -> None:
        """Six rows make up half of the sum: of 10,000 rows a sample of 2000 has one of them."""
        diagonal = np.ones(10000)
        diagonal[:11] = 1e9
        assert heavy_diagonal(diagonal, 2000).startswith("6 rows make up half")
        assert not heavy_diagonal(diagonal, 10000)

    def test_rows_without_the_heaviest(self) -> None:
        X = random_rows("equal", 500, 3, 0)
        X[[3, 40, 41, 300, 450, 499]] *= 1e4
        kept = light_rows(Polynomial(2), DataRows.of(X)).matrix
        assert len(kept) >= 490
        assert np.abs(kept).max() < 10.0

    def test_zeros_are_not_heavy(self) -> None:
        assert not heavy_diagonal(np.zeros(100), 50)


class TestSize:
    def fitted(self, X: NDArray[Any]) -> PolynomialSketch:
        sketch = PolynomialSketch(4, n_components="auto", eps=0.5, expansion="none", random_state=0)
        return sketch.fit(X)

    def test_no_promise_and_a_warning(self) -> None:
        """On these rows the size was once promised to do for rows on which the error is 0.94."""
        X = with_extremes(1000, 0.002, 30.0, 3)
        with pytest.warns(OutlierWarning, match="on the 1000 rows of X only.* half of the sum"):
            sketch = self.fitted(X)
        certificate = sketch.certificate_
        assert not certificate.for_new_rows
        assert "of these 1000 rows only: one row makes up half" in certificate.covers
        assert certificate.frobenius.exact
        assert relative_error(sketch, X) == pytest.approx(certificate.frobenius.value)
        assert certificate.bound <= 0.5
        # The rows that decide do not make the others worse.
        assert relative_error(sketch, with_extremes(500, 0.0, 1.0, 1)) <= 0.5

    def test_extreme_row_among_the_landmarks_only(self) -> None:
        X = np.random.default_rng(0).random((600, 10))
        for row in (0, 1):
            Y = X.copy()
            Y[row] *= 100.0
            sketch = LeverageNystroem(Polynomial(4), n_components="auto", eps=0.3, random_state=0)
            with pytest.warns(OutlierWarning, match="on the 600 rows of X only"):
                sketch.fit(Y)
            assert relative_error(sketch, Y) <= 0.3

    def test_many_rows_are_sampled(self) -> None:
        X = with_extremes(3000, 0.0, 1.0, 0)
        X[5] *= 50.0
        with pytest.warns(OutlierWarning, match="on the 3000 rows of X only"):
            size, certificate = grown_size(
                lambda size: Projected(30, size), X, 0.3, RandomStreams(0, "test")
            )
        assert certificate.rows == 3000
        assert relative_error(Projected(30, size), X) in certificate.frobenius

    def test_exact_map_promises_all_the_same(self) -> None:
        X = with_extremes(600, 0.004, 30.0, 0)[:, :6]
        sketch = PolynomialSketch(2, n_components="auto", eps=1e-3, random_state=0).fit(X)
        assert sketch.expansion_ == "exact"
        assert sketch.certificate_.for_new_rows

    def test_gaussian_kernel_has_no_heavy_rows(self) -> None:
        X = with_extremes(600, 0.004, 30.0, 0)
        sketch = LeverageNystroem(Gaussian(0.02), n_components="auto", eps=0.1, random_state=0)
        assert sketch.fit(X).certificate_.for_new_rows
        assert GaussianSketch(0.02).fit(X[:10])
