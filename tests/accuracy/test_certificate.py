"""Certificates as users see them."""

from __future__ import annotations

import builtins
import json
import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler

from powersketch import GaussianSketch, LeverageNystroem
from powersketch.accuracy import Certificate, certify, spectral
from powersketch.kernels import Gaussian, Kernel, Polynomial
from tests.accuracy.small_maps import (
    Projected,
    Stretched,
    all_entries,
    random_rows,
    relative_error,
    spread_out,
)

X_SMALL = random_rows("equal", 80, 6, 0)
X_LARGE = random_rows("equal", 2600, 6, 0)


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


class TestFigures:
    def test_all_pairs_of_few_rows(self) -> None:
        sketch = Projected(6, 20)
        certificate = certify(sketch, X_SMALL)
        assert certificate.frobenius.exact
        assert certificate.frobenius.value == pytest.approx(relative_error(sketch, X_SMALL))
        assert certificate.entrywise.exceeding_share == 0.0
        Z, K = sketch.transform(X_SMALL), X_SMALL @ X_SMALL.T
        errors = np.abs(Z @ Z.T - K)[~np.eye(80, dtype=bool)]
        unit = math.sqrt(np.mean(np.diag(K) ** 2))
        assert certificate.entrywise.unit == pytest.approx(unit)
        assert certificate.entrywise.largest == pytest.approx(errors.max() / unit)
        expected = math.sqrt(np.mean(errors**2)) / unit
        assert certificate.entrywise.root_mean_square.value == pytest.approx(expected)
        assert certificate.spectral is None
        assert (certificate.rows, certificate.measured_rows) == (80, 80)
        assert not certificate.for_new_rows

    def test_sample_of_many_rows(self) -> None:
        sketch = Projected(6, 20)
        certificate = certify(sketch, X_LARGE, random_state=0)
        assert certificate.measured_rows < 2200
        assert relative_error(sketch, X_LARGE) in certificate.frobenius
        assert not certificate.frobenius.exact
        assert certificate.frobenius.high < 1.1 * certificate.frobenius.low
        assert 0.0 < certificate.entrywise.exceeding_share < 0.002
        errors = sketch.transform(X_LARGE) @ sketch.transform(X_LARGE).T - X_LARGE @ X_LARGE.T
        worse = np.abs(errors) > certificate.entrywise.largest * certificate.entrywise.unit
        assert np.mean(worse) < certificate.entrywise.exceeding_share

    def test_spectral_part(self) -> None:
        certificate = certify(Stretched(1.1), np.diag([1.0, 2.0]), alpha=1.0)
        assert certificate.spectral is not None
        assert certificate.spectral.eps.value == pytest.approx(0.21 * 4 / 5)
        assert certificate.spectral.alpha == 1.0

    def test_same_seed_same_figures(self) -> None:
        one, two = (certify(Projected(6, 20), X_LARGE, random_state=3) for _ in range(2))
        assert one.to_dict() == two.to_dict()
        assert one.seed == 3
        assert np.array_equal(one.exact, two.exact)

    def test_threads_change_nothing_but_rounding(self) -> None:
        sketch = GaussianSketch(0.1, n_components=50, random_state=0).fit(X_LARGE)
        one, two = (certify(sketch, X_LARGE, random_state=3, n_jobs=jobs) for jobs in (None, 2))
        assert one.frobenius.value == pytest.approx(two.frobenius.value, rel=1e-9)

    def test_random_state_object_is_advanced(self) -> None:
        state = np.random.RandomState(0)
        seeds = {certify(Stretched(), X_SMALL, random_state=state).seed for _ in range(3)}
        assert len(seeds) == 3

    def test_zero_rows(self) -> None:
        certificate = certify(Stretched(), np.zeros((5, 2)), alpha=1.0)
        assert certificate.frobenius.value == 0.0
        assert certificate.spectral is not None
        assert certificate.spectral.eps.value == 0.0

    def test_duplicates_and_one_column(self) -> None:
        certificate = certify(Stretched(1.1), np.repeat([[1.0], [2.0]], 50, axis=0))
        assert certificate.frobenius.value == pytest.approx(0.21)


class TestDiagonal:
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


class TestInput:
    @pytest.mark.parametrize(
        "given",
        [
            X_SMALL.astype(np.float32),
            np.asfortranarray(X_SMALL),
            np.repeat(X_SMALL, 2, axis=0)[::2],
            sp.csr_array(X_SMALL),
            sp.csc_matrix(X_SMALL),
            X_SMALL.tolist(),
        ],
        ids=["float32", "fortran", "strided", "csr", "csc", "list"],
    )
    def test_layouts(self, given: Any) -> None:
        found = certify(Stretched(1.1), given, alpha=1.0)
        assert found.frobenius.value == pytest.approx(0.21, rel=1e-5)

    def test_read_only_input_is_left_alone(self) -> None:
        X = X_SMALL.copy()
        X.flags.writeable = False
        certify(Stretched(), X, alpha=1.0)
        assert np.array_equal(X, X_SMALL)

    def test_data_frame_keeps_its_names(self) -> None:
        """Warnings are errors here, and a map fitted with names warns where they lack."""
        frame = pd.DataFrame(X_LARGE).add_prefix("column ")
        sketch = GaussianSketch(0.1, n_components=20, random_state=0).fit(frame)
        named = certify(sketch, frame, random_state=0)
        plain = GaussianSketch(0.1, n_components=20, random_state=0).fit(X_LARGE)
        assert named.to_dict() == certify(plain, X_LARGE, random_state=0).to_dict()

    @pytest.mark.parametrize(
        ("parameters", "error", "text"),
        [
            ({"alpha": 0.0}, ValueError, "alpha=0.0 is out of range.*None"),
            ({"alpha": -1}, ValueError, "alpha"),
            ({"alpha": np.nan}, ValueError, "alpha"),
            ({"alpha": "1"}, TypeError, "alpha"),
            ({"alpha": 1e-15}, ValueError, "rounding errors"),
            ({"confidence": 1.0}, ValueError, "confidence=1.0"),
            ({"confidence": "high"}, TypeError, "confidence"),
            ({"products": 1}, ValueError, "products=1 .* at least 2"),
            ({"products": 8.0}, TypeError, "products"),
            ({"n_jobs": 0}, ValueError, "n_jobs=0"),
            ({"random_state": -1}, ValueError, "random_state"),
        ],
    )
    def test_bad_parameters(self, parameters: Any, error: type[Exception], text: str) -> None:
        with pytest.raises(error, match=text):
            certify(Stretched(), X_SMALL, **parameters)

    def test_one_row_is_too_few(self) -> None:
        with pytest.raises(ValueError, match="X has 1 row; at least 2 are needed"):
            certify(Stretched(), X_SMALL[:1])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_rows_that_are_not_finite(self, bad: float) -> None:
        X = X_SMALL.copy()
        X[3, 2] = bad
        with pytest.raises(ValueError, match="X contains"):
            certify(Stretched(), X)

    def test_unfitted_map(self) -> None:
        with pytest.raises(NotFittedError, match=r"GaussianSketch is not fitted; .* call fit"):
            certify(GaussianSketch(), X_SMALL)

    def test_fitted_map_without_a_kernel(self) -> None:
        sampler = RBFSampler(gamma=0.1, n_components=500, random_state=0)
        with pytest.raises(NotFittedError, match=r"RBFSampler is not fitted; .* call fit"):
            certify(sampler, X_SMALL)
        sampler.fit(X_SMALL)
        with pytest.raises(TypeError, match=r"RBFSampler without .* kernel_; .* set kernel_"):
            certify(sampler, X_SMALL)
        # The remedy that the message names.
        sampler.kernel_ = Gaussian(0.1)
        assert certify(sampler, X_SMALL).frobenius.value < 0.5

    def test_map_that_needs_no_fit_and_has_no_kernel(self) -> None:
        with pytest.raises(TypeError, match="SimpleNamespace without the attribute kernel_"):
            certify(SimpleNamespace(transform=np.asarray), X_SMALL)

    def test_kernel_that_is_none(self) -> None:
        sketch = SimpleNamespace(transform=np.asarray, kernel_="rbf")
        with pytest.raises(TypeError, match="SimpleNamespace without a kernel as kernel_"):
            certify(sketch, X_SMALL)

    def test_something_else(self) -> None:
        with pytest.raises(TypeError, match="sketch is a str"):
            certify("gaussian", X_SMALL)


class TestMapsThatAreWrong:
    def test_features_that_are_not_numbers(self) -> None:
        class Broken(Stretched):
            def transform(self, X: Any) -> Any:
                Z = super().transform(X)
                Z[4:6] = np.nan
                return Z

        with pytest.raises(ValueError, match=r"Broken returns NaN .* 2 of 80 rows, .* the row 4"):
            certify(Broken(), X_SMALL)

    def test_features_of_other_rows(self) -> None:
        fewer = SimpleNamespace(transform=lambda X: X[1:], kernel_=Polynomial(1))
        with pytest.raises(ValueError, match=r"returns the shape \(79, 6\) for 80 rows"):
            certify(fewer, X_SMALL)

    def test_sparse_features(self) -> None:
        identity = SimpleNamespace(transform=sp.csr_array, kernel_=Polynomial(1))
        assert certify(identity, X_SMALL).bound < 1e-12

    def test_features_beyond_all_bounds(self) -> None:
        certificate = certify(Stretched(1e200), X_SMALL)
        assert certificate.frobenius.value == math.inf
        assert certificate.to_dict()["frobenius"]["value"] is None

    def test_products_without_alpha_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"products=8 has no effect without alpha"):
            certify(Stretched(), X_SMALL, products=8)


class TestPresentation:
    def test_repr_of_an_exact_certificate(self) -> None:
        text = repr(certify(Stretched(1.1), X_SMALL, alpha=2.0))
        assert text.splitlines()[:2] == [
            "Certificate for 80 rows, all pairs of 80 measured, confidence 0.99:",
            "  relative Frobenius error   0.21 [exact]",
        ]
        assert "spectral eps, alpha=2" in text
        assert "from all eigenvalues" in text

    def test_repr_of_a_sampled_one(self) -> None:
        text = repr(certify(Projected(6, 20), X_LARGE, random_state=0))
        assert "exceeded by at most 0.11 % of them" in text
        assert "spectral" not in text

    def test_to_dict_is_json(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spectral, "_DENSE_ROWS", 40)
        monkeypatch.setattr(spectral, "MOST_WORK", 0.0)
        figures = certify(Stretched(1.1), X_SMALL, alpha=2.0, random_state=1).to_dict()
        assert json.loads(json.dumps(figures, allow_nan=False)) == figures
        assert figures["spectral"]["eps"]["high"] is None  # infinite
        assert figures["frobenius"]["value"] == pytest.approx(0.21)
        assert figures["seed"] == 1

    def test_plot_on_given_axes(self) -> None:
        certificate = certify(Stretched(1.1), X_SMALL, alpha=1.0)
        axes = Figure().subplots()
        assert certificate.plot(axes) is axes
        assert "relative error 0.21" in axes.get_title()
        assert "spectral eps" in axes.get_title()
        drawn = axes.lines[-1].get_xydata()
        assert len(drawn) == 4096
        assert drawn[:, 1] == pytest.approx(1.21 * drawn[:, 0])

    def test_plot_makes_axes(self) -> None:
        axes = certify(Stretched(1.1), X_SMALL).plot()
        assert axes.get_xlabel() == "k(x, y)"

    def test_plot_without_matplotlib(self, monkeypatch: pytest.MonkeyPatch) -> None:
        certificate = certify(Stretched(1.1), X_SMALL)
        real = builtins.__import__

        def without(name: str, *arguments: Any, **options: Any) -> Any:
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return real(name, *arguments, **options)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(ImportError, match=r"powersketch\[plot\]"):
            certificate.plot()

    def test_is_frozen(self) -> None:
        certificate = certify(Stretched(1.1), X_SMALL)
        assert isinstance(certificate, Certificate)
        with pytest.raises(AttributeError):
            certificate.rows = 3  # type: ignore[misc]
