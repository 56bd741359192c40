"""Every figure of a comparison against brute force, and on which rows it is measured."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import eigh

from powersketch import compare
from powersketch.comparison import METHODS, Comparison
from powersketch.kernels import ArcCosine, DotProduct, Gaussian, NeuralTangent, Polynomial
from tests.comparison.measured_rows import failing_method, recording_method, unit_rows

KERNEL = Polynomial(degree=3, gamma=0.5, coef0=1.0)
FEW = {"methods": ["power", "nystroem"], "components": [8], "seeds": 1, "random_state": 0}
OBSERVED = ("fit_seconds", "transform_seconds", "transform_bytes", "memory_bytes")


def without_times(comparison: Comparison) -> dict[str, Any]:
    """Return all figures that do not depend on what else the machine and Python do."""
    figures = comparison.to_dict()
    del figures["exact"]["seconds"], figures["date"]
    for found in figures["measurements"]:
        for name in OBSERVED:
            del found[name]
    return figures


def row_set(X: Any) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(X)}


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


@pytest.mark.parametrize(
    ("count", "pilot", "fitted", "measured"),
    [(61, 2000, 31, 30), (90, 40, 40, 20), (50, 40, 30, 20)],
)
def test_rows_that_are_fitted_on_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, count: int, pilot: int, fitted: int, measured: int
) -> None:
    made = recording_method(monkeypatch)
    X = unit_rows(count)
    found = compare(
        X, KERNEL, methods=["recorder"], components=[4], pilot_rows=pilot, random_state=2
    )
    for recorder in made:
        assert len(recorder.fitted) == 1
        assert not row_set(recorder.fitted[0]) & row_set(recorder.transformed[0])
        assert row_set(recorder.fitted[0]) | row_set(recorder.transformed[0]) <= row_set(X)
        assert (len(recorder.fitted[0]), len(recorder.transformed[0])) == (fitted, measured)
    assert (found.fit_rows, found.measured_rows) == (fitted, measured)
    assert found.measurements[0].transform_rows == measured


def test_an_exact_map_has_no_error() -> None:
    X = unit_rows(40, 3)
    found = compare(X, Polynomial(2), methods=["power"], components=[6], seeds=1)
    (measured,) = found.measurements
    assert measured.frobenius < 1e-12
    assert measured.operator_norm < 1e-12
    assert measured.spectral == pytest.approx((1.0, 1.0), abs=1e-9)


def test_sizes_and_methods_come_in_order() -> None:
    found = compare(
        unit_rows(50), KERNEL, methods=["tree", "power", "tree"], components=[9, 5, 9], seeds=1
    )
    assert found.components == (5, 9)
    assert found.methods == ("tree", "power")
    listed = [(measured.n_components, measured.method) for measured in found.measurements]
    assert listed == [(5, "tree"), (5, "power"), (9, "tree"), (9, "power")]


def test_all_methods_for_the_kernel_take_part_by_default() -> None:
    for kernel in (KERNEL, NeuralTangent()):
        found = compare(unit_rows(40), kernel, components=[8], seeds=1, random_state=0)
        able = [name for name, method in METHODS.items() if method.supports(kernel) is None]
        assert [*found.methods] == able
        assert [measured.error_message for measured in found.measurements] == [None] * len(able)


@pytest.mark.parametrize(
    "kernel", [KERNEL, Gaussian(0.5), ArcCosine(), NeuralTangent(), DotProduct(np.exp)]
)
def test_everything_but_times_is_the_same_again(kernel: Any) -> None:
    X = unit_rows(50)
    first, again = (compare(X, kernel, **FEW) for _ in range(2))
    assert without_times(first) == without_times(again)
    for image in ("kernel_image", "approximate_images"):
        np.testing.assert_equal(getattr(first, image), getattr(again, image))
    for one, two in zip(first.measurements, again.measurements, strict=True):
        assert abs(one.transform_bytes - two.transform_bytes) < 5000
    other = compare(X, kernel, **{**FEW, "random_state": 1})
    assert without_times(first) != without_times(other)


def test_a_random_state_without_a_seed_reports_the_one_it_took() -> None:
    X = unit_rows(30)
    first = compare(X, KERNEL, **{**FEW, "random_state": None})
    again = compare(X, KERNEL, **{**FEW, "random_state": first.seed})
    assert without_times(first) == without_times(again)


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_threads_change_no_sketch(jobs: int) -> None:
    X = unit_rows(50)
    options = {**FEW, "methods": ["power", "tree"]}
    one, several = compare(X, KERNEL, **options), compare(X, KERNEL, n_jobs=jobs, **options)
    for first, second in zip(one.measurements, several.measurements, strict=True):
        assert first.frobenius == pytest.approx(second.frobenius, rel=1e-12)


@pytest.mark.parametrize(
    "layout",
    [
        sparse.csr_array,
        sparse.csc_matrix,
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: pd.DataFrame(X, columns=[f"column {name}" for name in range(X.shape[1])]),
        lambda X: X.tolist(),
    ],
)
def test_layouts_give_the_same_figures(layout: Any) -> None:
    X = unit_rows(40)
    X.flags.writeable = False
    options = {**FEW, "methods": ["power", "nystroem", "sklearn-countsketch"]}
    dense, other = compare(X, KERNEL, **options), compare(layout(X), KERNEL, **options)
    assert other.data_shape == (40, 7)
    for first, second in zip(dense.measurements, other.measurements, strict=True):
        assert second.error_message is None
        # Other base sketches and orders of summation serve sparse rows.
        tolerance = 1e-6 if not sparse.issparse(layout(X)) else 2.0
        assert second.frobenius == pytest.approx(first.frobenius, rel=tolerance)


def test_single_precision_is_enough_for_the_same_errors() -> None:
    X = unit_rows(40).astype(np.float32)
    single, double = compare(X, KERNEL, **FEW), compare(X.astype(float), KERNEL, **FEW)
    for first, second in zip(single.measurements, double.measurements, strict=True):
        assert first.frobenius == pytest.approx(second.frobenius, rel=1e-2)


def test_rows_are_not_modified() -> None:
    X = unit_rows(30)
    before = X.copy()
    compare(X, KERNEL, components=[8], seeds=1)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("columns", [1, 2])
def test_the_fewest_rows_and_columns(columns: int) -> None:
    found = compare(unit_rows(4, columns), KERNEL, components=[1, 2], seeds=1, random_state=0)
    assert (found.fit_rows, found.measured_rows) == (2, 2)
    assert found.best(components=2).error >= 0.0


def test_some_zero_rows_do_no_harm() -> None:
    X = unit_rows(40)
    X[::3] = 0.0
    found = compare(X, Polynomial(3), components=[8], seeds=1, random_state=0)
    assert all(measured.error_message is None for measured in found.measurements)


def test_entries_whose_squares_overflow_are_compared() -> None:
    """(1e5)^32 = 1e160 is a number, its square is none."""
    X = 300.0 * unit_rows(40)
    found = compare(X, Polynomial(32), **FEW)
    for measured in found.measurements:
        assert measured.error_message is None
        assert 0.0 < measured.frobenius < 10.0


def test_a_failure_is_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_method(monkeypatch, "broken", ValueError("two\nlines"))
    found = compare(
        unit_rows(30), KERNEL, methods=["broken", "power", "nystroem"], components=[8, 64], seeds=2
    )
    messages = {
        (measured.method, measured.n_components): measured.error_message
        for measured in found.measurements
    }
    assert messages["broken", 8] == messages["broken", 64] == "ValueError: two lines"
    assert messages["power", 8] is messages["power", 64] is messages["nystroem", 8] is None
    assert "15 features only" in str(messages["nystroem", 64])
    assert found.common_components == 8
    assert [*found.approximate_spectra] == [*found.approximate_images] == ["power", "nystroem"]
    assert found.complete
    assert "broken with 8 components failed: ValueError: two lines" in found.table()
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_features_that_are_not_finite_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording_method(monkeypatch)
    monkeypatch.setattr(
        "tests.comparison.measured_rows.Recorder.transform",
        lambda self, X: np.full((X.shape[0], self.size), np.inf),
    )
    found = compare(unit_rows(30), KERNEL, methods=["recorder"], components=[4], seeds=1)
    assert len(made) == 1
    assert "not finite" in str(found.measurements[0].error_message)
    with pytest.raises(ValueError, match="nothing to choose from"):
        found.best()


def test_an_interruption_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_method(monkeypatch, "slow", KeyboardInterrupt(), after=1)
    found = compare(unit_rows(30), KERNEL, methods=["power", "slow"], components=[4, 8], seeds=1)
    assert not found.complete
    listed = [(measured.method, measured.n_components) for measured in found.measurements]
    assert listed == [("power", 4), ("slow", 4), ("power", 8)]
    assert found.common_components == 4
    assert "interrupted" in found.table()
    assert found.best(components=4).n_components == 4
    assert found.to_dict()["complete"] is False


def test_progress_is_told_before_every_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, int, str]] = []
    compare(
        unit_rows(30),
        KERNEL,
        methods=["power", "tree"],
        components=[4],
        seeds=1,
        verbose=1,
        callback=lambda *state: told.append(state),
    )
    assert told == [(0, 2, "power, 4 components"), (1, 2, "tree, 4 components"), (2, 2, "")]
    assert "[compare] 2/2 measurements (100%)" in capsys.readouterr().err


def test_silent_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    compare(unit_rows(30), KERNEL, **FEW)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_name_is_a_kernel_with_defaults() -> None:
    X = unit_rows(30)
    gamma = 1.0 / (X.shape[1] * X.var())
    for name, kernel in (
        ("polynomial", Polynomial()),
        ("gaussian", Gaussian(gamma)),
        ("arc-cosine", ArcCosine()),
        ("neural-tangent", NeuralTangent()),
    ):
        found = compare(X, name, **FEW)
        assert found.kernel.partition("(")[0] == repr(kernel).partition("(")[0]
        np.testing.assert_allclose(
            found.measurements[0].frobenius, compare(X, kernel, **FEW).measurements[0].frobenius
        )


def test_sparse_entries_in_parts_count_once_for_the_scale() -> None:
    X = unit_rows(30)
    halves = sparse.coo_array(
        (
            np.tile(X.ravel() / 2, 2),
            (np.tile(np.repeat(np.arange(30), 7), 2), np.tile(np.arange(7), 60)),
        )
    )
    indptr = np.arange(0, 421, 14)
    order = np.argsort(halves.coords[0], kind="stable")
    parts = sparse.csr_array((halves.data[order], halves.coords[1][order], indptr), shape=(30, 7))
    assert not parts.has_canonical_format
    gamma = float(compare(parts, "gaussian", **FEW).kernel[15:-1])
    assert gamma == pytest.approx(1.0 / (7 * X.var()))
    assert not parts.has_canonical_format


def test_methods_are_ranked_as_they_should_be() -> None:
    """Exact norms and the expansion around the mean gain more than a factor of 2."""
    found = compare(
        np.abs(unit_rows(300, 30)),
        Polynomial(4, coef0=0.5),
        methods=["power", "power-literal", "sklearn-countsketch"],
        components=[64],
        random_state=0,
    )
    error = {measured.method: measured.frobenius for measured in found.measurements}
    assert error["power"] < 0.5 * error["power-literal"]
    assert error["power"] < 0.5 * error["sklearn-countsketch"]
    assert found.best().method == "power"
