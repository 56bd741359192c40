"""Numbers of components: grown until the error is kept, predicted, and confirmed on other rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import GaussianSketch, LeverageNystroem, PolynomialSketch
from powersketch.accuracy import certify, required_components, statistical_dimension
from powersketch.accuracy.growth import OutOfReachError, grown_size, smallest_size
from powersketch.exceptions import OutlierWarning
from powersketch.kernels import Gaussian, Kernel, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import (
    KeptNorms,
    Projected,
    all_entries,
    random_rows,
    relative_error,
    spread_out,
)

X = random_rows("equal", 300, 6, 0) / 3.0


class TestSmallestSize:
    @pytest.mark.parametrize("needed", [1, 2, 3, 10, 63, 64, 65, 300, 5000])
    def test_finds_where_the_error_falls_like_a_root(self, needed: int) -> None:
        found = smallest_size(lambda size: math.sqrt(needed / size), 1.0, (1, 2**16))
        assert needed <= found <= max(math.ceil(1.12 * needed), needed + 1)

    def test_finds_a_jump(self) -> None:
        found = smallest_size(lambda size: 0.0 if size >= 1000 else 0.06, 0.05, (1, 2**16))
        assert 1000 <= found <= 1120

    def test_few_sizes_are_tried(self) -> None:
        tried = []

        def measure(size: int) -> float:
            tried.append(size)
            return math.sqrt(3000 / size)

        smallest_size(measure, 1.0, (1, 2**16))
        assert len(tried) <= 9
        assert max(tried) < 2 * 3000

    def test_keeps_to_the_allowed_sizes(self) -> None:
        assert smallest_size(lambda size: 0.0, 0.1, (8, 100)) == 8
        assert smallest_size(lambda size: 0.0, 0.1, (100, 100)) == 100
        assert smallest_size(lambda size: 1.0 if size < 100 else 0.0, 0.1, (1, 100)) == 100

    def test_says_what_was_reached(self) -> None:
        with pytest.raises(OutOfReachError, match=r"n_components=100, .* error is 0\.5"):
            smallest_size(lambda size: 5.0 / math.sqrt(size), 0.1, (1, 100))

    def test_gives_up_early_where_there_is_no_hope(self) -> None:
        with pytest.raises(OutOfReachError) as failure:
            smallest_size(lambda size: 0.9, 0.01, (1, 2**16))
        assert failure.value.size == 4096
        assert failure.value.error == 0.9


@dataclass(frozen=True, eq=False)
class Seen:
    """A map that keeps the rows it was measured on."""

    size: int
    rows: list[NDArray[Any]]
    kernel_: Kernel = field(default_factory=lambda: Polynomial(degree=1))

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        self.rows.append(X)
        return Projected(8, self.size).transform(X)


class TestGrownSize:
    def test_certificate_holds_for_new_rows(self) -> None:
        X = random_rows("equal", 3000, 8, 0)
        size, certificate = grown_size(
            lambda size: Projected(8, size), X, 0.1, RandomStreams(0, "test")
        )
        assert certificate.for_new_rows
        assert certificate.frobenius.high <= 0.1
        assert certificate.rows == certificate.measured_rows == 2000
        assert relative_error(Projected(8, size), random_rows("equal", 1000, 8, 1)) <= 0.1
        assert relative_error(Projected(8, size // 2), X) > 0.1

    def test_confirmed_on_rows_that_were_not_searched(self) -> None:
        X, drawn = random_rows("equal", 800, 8, 0), []

        def draw(size: int) -> Seen:
            drawn.append(Seen(size, []))
            return drawn[-1]

        grown_size(draw, X, 0.2, RandomStreams(0, "test"))
        searched = {tuple(row) for row in drawn[1].rows[0]}
        confirmed = {tuple(row) for rows in drawn[-1].rows for row in rows}
        assert len(searched) == len(confirmed) == 400
        assert not searched & confirmed

    def test_few_rows_are_certified_as_they_are(self) -> None:
        X = random_rows("equal", 100, 8, 0)
        size, certificate = grown_size(
            lambda size: Projected(8, size), X, 0.2, RandomStreams(0, "test")
        )
        assert not certificate.for_new_rows
        assert certificate.frobenius.exact
        assert certificate.frobenius.value <= 0.2
        assert certificate.rows == 100
        assert certificate.frobenius.value == pytest.approx(
            relative_error(Projected(8, size), X), rel=1e-12
        )

    @pytest.mark.parametrize("X", [np.zeros((50, 8)), np.ones((2, 8)), np.zeros((500, 8))])
    def test_degenerate_rows(self, X: NDArray[Any]) -> None:
        size, certificate = grown_size(
            lambda size: Projected(8, size), X, 0.2, RandomStreams(0, "test")
        )
        assert size >= 1
        assert certificate.frobenius.high <= 0.2

    def test_out_of_reach(self) -> None:
        X = random_rows("equal", 500, 8, 0)
        with pytest.raises(OutOfReachError, match=r"eps=0\.001 is out of reach"):
            grown_size(lambda size: Projected(8, size), X, 1e-3, RandomStreams(0), sizes=(1, 200))

    def test_one_row_is_too_few(self) -> None:
        with pytest.raises(ValueError, match="at least 2"):
            grown_size(lambda size: Projected(8, size), np.ones((1, 8)), 0.1, RandomStreams(0))

    def test_size_of_a_map_with_exact_norms_follows_from_its_pairs(self) -> None:
        X = random_rows("equal", 800, 8, 0)
        size, certificate = grown_size(
            lambda size: KeptNorms(Projected(8, size)), X, 0.2, RandomStreams(0, "test")
        )
        assert certificate.bound == certificate.frobenius.high
        assert size == 158

    def test_a_wrong_diagonal_of_fresh_rows_only_makes_the_map_larger(self) -> None:
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


class TestWholeMatrix:
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

    def test_of_sizes(self) -> None:
        """Maps that keep eps with 99 %, as they should, miss 3 of 20 with a risk of 0.1 %."""
        held = 0
        for seed in range(20):
            X, further = np.random.default_rng(seed).random((2, 400, 3))
            sketch = LeverageNystroem(
                Gaussian(3.0), n_components="auto", eps=0.2, landmarks="uniform", random_state=seed
            ).fit(X)
            held += max(all_entries(sketch, further), relative_error(sketch, further)) <= 0.2
        assert held >= 18


def with_extremes(count: int, share: float, factor: float, seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    X = generator.random((count, 30))
    X[generator.random(count) < share] *= factor
    return X


class TestDominance:
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

    def test_no_row_dominates_a_gaussian_kernel(self) -> None:
        X = with_extremes(600, 0.004, 30.0, 0)
        sketch = LeverageNystroem(Gaussian(0.02), n_components="auto", eps=0.1, random_state=0)
        assert sketch.fit(X).certificate_.for_new_rows
        assert GaussianSketch(0.02).fit(X[:10])


class TestFrobenius:
    def test_measured_size_keeps_the_error(self) -> None:
        sketch = GaussianSketch(0.5)
        required = required_components(sketch, X, 0.1, random_state=0)
        assert required.measured is not None
        fitted = GaussianSketch(0.5, n_components=required.measured, random_state=0).fit(X)
        assert certify(fitted, X).frobenius.value <= 0.1
        error = certify(GaussianSketch(0.5, n_components=256, random_state=0).fit(X), X).frobenius
        assert required.predicted == math.ceil(256 * (error.value / 0.1) ** 2)
        assert "relative error" in required.message

    def test_sketch_is_left_alone(self) -> None:
        sketch = GaussianSketch(0.5, n_components="auto", eps=0.3)
        before = sketch.get_params()
        required_components(sketch, X, 0.2, random_state=0)
        assert sketch.get_params() == before
        assert not hasattr(sketch, "kernel_")

    def test_same_seed_same_numbers(self) -> None:
        one, two = (required_components(GaussianSketch(), X, 0.2, random_state=1) for _ in range(2))
        assert one == two

    def test_out_of_reach(self) -> None:
        required = required_components(GaussianSketch(20.0, internal_components=512), X, 0.01)
        assert required.measured is None
        assert "with n_components=512" in required.message


class TestSpectral:
    def test_measured_size_keeps_the_error(self) -> None:
        required = required_components(GaussianSketch(0.5), X, 0.8, alpha=10.0, random_state=0)
        assert required.measured is not None
        fitted = GaussianSketch(0.5, n_components=required.measured, random_state=0).fit(X)
        spectral = certify(fitted, X, alpha=10.0).spectral
        assert spectral is not None
        assert spectral.eps.value <= 0.8
        dimension = float(statistical_dimension(fitted.kernel_, X, 10.0))
        ratio = dimension / required.predicted
        assert 2 * math.sqrt(ratio) + ratio == pytest.approx(0.8, rel=0.05)
        assert "statistical dimension" in required.message

    def test_far_too_many(self) -> None:
        required = required_components(GaussianSketch(0.5), X, 0.01, alpha=1e-3, random_state=0)
        assert required.measured is None
        assert "far too many" in required.message
        assert required.predicted > 2**16


class TestLandmarks:
    @pytest.mark.parametrize("count", [2, 100])
    @pytest.mark.parametrize("alpha", [None, 1.0])
    def test_no_more_than_rows(self, count: int, alpha: float | None) -> None:
        # More landmarks than rows would be warned of, and warnings are errors here.
        sketch = LeverageNystroem(Gaussian(1.0))
        required = required_components(sketch, X[:count], 0.1, alpha=alpha, random_state=0)
        assert required.measured is not None
        assert required.measured <= count
        fitted = LeverageNystroem(Gaussian(1.0), n_components=required.measured, random_state=0)
        certificate = certify(fitted.fit(X[:count]), X[:count], alpha=1.0)
        assert certificate.spectral is not None
        error = certificate.frobenius if alpha is None else certificate.spectral.eps
        assert error.value <= 0.1

    def test_error_is_that_of_new_rows(self) -> None:
        rows, new = random_rows("equal", 600, 6, 0), random_rows("equal", 1000, 6, 1)
        required = required_components(LeverageNystroem(), rows, 0.2, random_state=0)
        assert required.measured is not None
        assert "on rows that maps were not fitted to" in required.message
        sketch = LeverageNystroem(n_components=required.measured, random_state=0)
        assert certify(sketch.fit(rows), new).frobenius.value <= 0.2


class TestBadInput:
    @pytest.mark.parametrize(
        ("eps", "parameters", "error", "text"),
        [
            (0.0, {}, ValueError, "eps=0.0"),
            (1.0, {}, ValueError, "eps=1.0"),
            ("0.1", {}, TypeError, "eps"),
            (0.1, {"alpha": 0.0}, ValueError, "alpha=0.0"),
            (0.1, {"alpha": 1e-16}, ValueError, "rounding errors"),
            (0.1, {"confidence": 0.0}, ValueError, "confidence"),
            (0.1, {"confidence": 0.9}, ValueError, "confidence=0.9 has no effect without alpha"),
            (0.1, {"random_state": -1}, ValueError, "random_state"),
        ],
    )
    def test_parameters(self, eps: Any, parameters: Any, error: type[Exception], text: str) -> None:
        with pytest.raises(error, match=text):
            required_components(GaussianSketch(), X, eps, **parameters)

    def test_not_a_map(self) -> None:
        with pytest.raises(TypeError, match="sketch is a str"):
            required_components("gaussian", X, 0.1)

    def test_one_row(self) -> None:
        with pytest.raises(ValueError, match="at least 2"):
            required_components(GaussianSketch(), X[:1], 0.1)
