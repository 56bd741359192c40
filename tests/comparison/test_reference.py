"""Every error of a comparison against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from powersketch import compare
from powersketch.kernels import Gaussian, Polynomial
from tests.comparison.measured_rows import FEW, KERNEL, recording_method, unit_rows


def test_errors_are_those_of_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording_method(monkeypatch)
    found = compare(
        unit_rows(90), KERNEL, methods=["recorder"], components=[5], alpha=0.3, random_state=1
    )
    assert len(made) == 3
    assert len({recorder.seed for recorder in made}) == 3
    X = made[0].transformed[0]
    K = KERNEL(X)
    frobenius, operator, low, high = [], [], [], []
    for recorder in made:
        Z = recorder.transform(X)
        difference = Z @ Z.T - K
        frobenius.append(np.linalg.norm(difference) / np.linalg.norm(K))
        operator.append(np.linalg.norm(difference, 2) / np.linalg.norm(K, 2))
        ridge = 0.3 * np.eye(len(X))
        values = eigh(Z @ Z.T + ridge, K + ridge, eigvals_only=True)
        low.append(values[0])
        high.append(values[-1])
    (measured,) = found.measurements
    assert measured.frobenius == pytest.approx(np.median(frobenius))
    assert measured.frobenius_spread == pytest.approx((max(frobenius) - min(frobenius)) / 2)
    assert measured.operator_norm == pytest.approx(np.median(operator))
    assert measured.spectral == pytest.approx((np.median(low), np.median(high)))
    assert found.alpha == pytest.approx(0.3)
    np.testing.assert_allclose(found.spectrum, np.linalg.eigvalsh(K)[::-1], atol=1e-10)
    Z = made[-1].transform(X)
    np.testing.assert_allclose(
        found.approximate_spectra["recorder"], np.linalg.eigvalsh(Z @ Z.T)[::-1], atol=1e-10
    )


def test_the_operator_norm_of_many_rows_is_found_by_lanczos(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 100 steps for 300 rows, within a percent from below."""
    made = recording_method(monkeypatch)
    found = compare(
        unit_rows(600, 30), KERNEL, methods=["recorder"], components=[40], seeds=1, random_state=1
    )
    X = made[0].transformed[0]
    Z, K = made[0].transform(X), KERNEL(X)
    exact = np.linalg.norm(Z @ Z.T - K, 2) / np.linalg.norm(K, 2)
    assert 0.99 * exact <= found.measurements[0].operator_norm <= (1 + 1e-9) * exact


def test_images_are_parts_of_the_matrices_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording_method(monkeypatch)
    found = compare(
        unit_rows(300), KERNEL, methods=["recorder"], components=[4, 6], seeds=1, random_state=1
    )
    assert found.common_components == 6
    assert found.kernel_image.shape == found.approximate_images["recorder"].shape == (96, 96)
    X = made[-1].transformed[0]
    K = KERNEL(X)
    # A row of K is told by its sorted entries, whatever the order is.
    np.testing.assert_allclose(np.trace(found.kernel_image), np.trace(K[:96, :96]))
    np.testing.assert_allclose(np.sort(found.kernel_image, axis=None), np.sort(K[:96, :96], None))
    Z = made[-1].transform(X[:96])
    np.testing.assert_allclose(
        np.sort(found.approximate_images["recorder"], axis=None), np.sort(Z @ Z.T, axis=None)
    )


def test_rows_that_are_alike_are_beside_each_other_in_the_image() -> None:
    centres = np.eye(2)[np.random.default_rng(0).integers(0, 2, size=120)]
    found = compare(centres + 0.01 * unit_rows(120, 2), Gaussian(2.0), **FEW)
    image = found.kernel_image > 0.5
    assert np.count_nonzero(np.diff(image[0].astype(int))) == 1


def test_the_default_alpha_is_a_hundredth_of_the_trace() -> None:
    found = compare(unit_rows(50), KERNEL, **FEW)
    assert found.alpha == pytest.approx(0.01 * found.spectrum.sum())


def test_an_exact_map_has_no_error() -> None:
    X = unit_rows(40, 3)
    found = compare(X, Polynomial(2), methods=["power"], components=[6], seeds=1)
    (measured,) = found.measurements
    assert measured.frobenius < 1e-12
    assert measured.operator_norm < 1e-12
    assert measured.spectral == pytest.approx((1.0, 1.0), abs=1e-9)


def test_entries_whose_squares_overflow_are_compared() -> None:
    """(1e5)^32 = 1e160 is a number, its square is none."""
    X = 300.0 * unit_rows(40)
    found = compare(X, Polynomial(32), **FEW)
    for measured in found.measurements:
        assert measured.error_message is None
        assert 0.0 < measured.frobenius < 10.0
