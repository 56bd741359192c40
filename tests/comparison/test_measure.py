"""Failures, memory and warnings of methods."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from powersketch import compare
from powersketch.comparison.measure import peak_bytes, stored_bytes
from powersketch.kernels import Polynomial
from tests.comparison.measured_rows import (
    KERNEL,
    Recorder,
    failing_method,
    recording_method,
    unit_rows,
)


def test_peak_memory_is_what_is_held_at_a_time() -> None:
    def call() -> None:
        for _ in range(3):
            np.ones(10**6)

    assert 8 * 10**6 <= peak_bytes(call) < 9 * 10**6


def test_stored_memory_counts_every_array_once() -> None:
    class Holder:
        pass

    shared = np.ones(100)
    holder = Holder()
    holder.array, holder.view = shared, shared[:10]
    holder.parts = [shared, {"more": np.ones(7)}, (np.ones(3), np.float64)]
    holder.itself = holder
    assert stored_bytes(holder) == 8 * (100 + 7 + 3)


def test_measured_memory_holds_the_features_at_least() -> None:
    found = compare(unit_rows(200), Polynomial(2), methods=["nystroem"], components=[50], seeds=1)
    (measured,) = found.measurements
    assert measured.transform_bytes >= 8 * 100 * 50
    assert measured.state_bytes >= 8 * (50 * 7 + 50 * 50)
    assert measured.memory_bytes == measured.state_bytes + measured.transform_bytes
    assert measured.seconds_for(200) == pytest.approx(2 * measured.transform_seconds)


def test_warnings_of_methods_are_part_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    recording_method(monkeypatch)
    fit = Recorder.fit

    def warning_fit(self: Recorder, X: np.ndarray) -> Recorder:
        warnings.warn("rows are\n few", UserWarning, stacklevel=2)
        warnings.warn("this will change", FutureWarning, stacklevel=2)
        return fit(self, X)

    monkeypatch.setattr(Recorder, "fit", warning_fit)
    comparison = compare(
        unit_rows(30), Polynomial(2), methods=["recorder", "power"], components=[4], seeds=3
    )
    first, second = comparison.measurements
    assert first.warnings == ("rows are few",)
    assert second.warnings == ()
    assert "recorder with 4 components warned: rows are few" in comparison.table()
    assert comparison.to_dict()["measurements"][0]["warnings"] == ["rows are few"]


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
