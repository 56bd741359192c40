"""Which rows are measured, what is reproducible, and what is refused before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from powersketch import compare
from powersketch.comparison import METHODS, Comparison
from powersketch.kernels import ArcCosine, DotProduct, Gaussian, NeuralTangent, Polynomial
from tests.comparison.measured_rows import (
    FEW,
    KERNEL,
    failing_method,
    recording_method,
    unit_rows,
)

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
        # Another base sketch serves sparse rows, which gives other errors of the same size.
        if first.method == "power" and sparse.issparse(layout(X)):
            assert max(first.frobenius, second.frobenius) < 0.5
        else:
            assert second.frobenius == pytest.approx(first.frobenius, rel=1e-6)


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


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"methods": ["powr"]}, ValueError, "method 'powr' is unknown; those for Polynomial"),
        ({"methods": ["fourier"]}, ValueError, "'fourier' cannot do .*Gaussian.*Use one of power,"),
        ({"methods": "power"}, TypeError, "not a list of names"),
        ({"methods": [1]}, TypeError, "not a list of names"),
        ({"methods": []}, ValueError, "methods is empty; choose from power"),
        ({"components": []}, ValueError, "components is empty"),
        ({"components": 64}, TypeError, "allowed is a list of integers"),
        ({"components": "64"}, TypeError, "allowed is a list of integers"),
        ({"components": [0]}, ValueError, "components=0 is out of range"),
        ({"components": [8.0]}, TypeError, "components=8.0"),
        ({"seeds": 0}, ValueError, "seeds=0"),
        ({"seeds": 10**20}, ValueError, "seeds=1000.* from 1 to 1000000"),
        ({"seeds": 2.5}, TypeError, "seeds=2.5"),
        ({"pilot_rows": 3}, ValueError, "pilot_rows=3"),
        ({"alpha": 0.0}, ValueError, "alpha=0"),
        ({"alpha": 1e-30}, ValueError, "below the rounding errors"),
        ({"time_budget": -1.0}, ValueError, "time_budget=-1"),
        ({"memory_budget": 0}, ValueError, "memory_budget=0"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"kernel": "matern"}, ValueError, "kernel='matern' is unknown; use one of 'linear'"),
        ({"kernel": lambda x, y: 1.0}, TypeError, "allowed are the kernels of powersketch.kernels"),
        ({"X": np.full((9, 2), np.nan)}, ValueError, "NaN"),
        ({"X": np.full((9, 2), np.inf)}, ValueError, "infinity"),
        ({"X": unit_rows(3)}, ValueError, "X has 3 rows; at least 4"),
        ({"X": np.zeros((9, 2))}, ValueError, "zero on all 4 measured rows"),
        ({"X": np.ones(9)}, ValueError, "2D array"),
        ({"X": 1e200 * unit_rows(9)}, ValueError, "overflows"),
    ],
)
def test_refusals(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {
        "X": unit_rows(20),
        "kernel": Polynomial(2),
        "components": [4],
        **changes,
    }
    with pytest.raises(kind, match=message):
        compare(**arguments)


def test_a_method_for_other_kernels_names_those_that_can() -> None:
    with pytest.raises(ValueError, match="cannot do ArcCosine") as caught:
        compare(unit_rows(9), ArcCosine(), methods=["sklearn-nystroem"])
    able = str(caught.value).partition("Use one of ")[2].rstrip(".").split(", ")
    assert able == [name for name in METHODS if METHODS[name].supports(ArcCosine()) is None]
    assert "random" in able
    assert "fourier" not in able


def test_too_little_memory_for_the_exact_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powersketch.comparison.run.available_memory", lambda: 32 * 2**10)
    with pytest.raises(MemoryError, match=r"50 measured rows.*78.1 KiB, and 32 KiB.*at most 64"):
        compare(unit_rows(100), Gaussian(), components=[4])
    assert compare(unit_rows(100), Gaussian(), components=[4], seeds=1, pilot_rows=64).complete


def test_nothing_is_drawn_from_a_random_state_that_is_not_needed() -> None:
    state = np.random.RandomState(0)
    with pytest.raises(ValueError, match="seeds"):
        compare(unit_rows(9), Polynomial(2), seeds=0, random_state=state)
    assert state.randint(2**31) == np.random.RandomState(0).randint(2**31)
