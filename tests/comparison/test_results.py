"""Tables, dictionaries, frames, recommendations and files of a comparison."""

from __future__ import annotations

import builtins
import json
import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersketch import compare
from powersketch.comparison import Comparison, ExactKernel, Measurement
from powersketch.comparison.memory import peak_bytes, stored_bytes
from powersketch.comparison.writing import replaced
from powersketch.kernels import Polynomial
from tests.comparison.measured_rows import unit_rows

FAST = Measurement("fast", "oblivious", 64, 0.4, 0.01, 0.2, (0.5, 2.0), 1.0, 0.1, 100, 50, 1000)
EXACT = Measurement("exact", "peer", 64, 0.1, 0.0, 0.3, (0.9, 1.1), 1.0, 0.5, 100, 10, 9000)
LARGE = Measurement("fast", "oblivious", 128, 0.2, 0.0, 0.1, (0.7, 1.4), 2.0, 0.2, 100, 90, 2000)
BROKEN = Measurement("broken", "peer", 64, error_message="it broke")
MADE = Comparison(
    kernel="Polynomial(degree=2)",
    data_shape=(1000, 5),
    fit_rows=100,
    measured_rows=100,
    components=(64, 128),
    seeds=3,
    seed=7,
    measurements=(FAST, EXACT, BROKEN, LARGE),
    exact=ExactKernel(0.25, 80_000),
    alpha=1.5,
    spectrum=np.array([3.0, 1.0]),
    common_components=64,
    approximate_spectra={"fast": np.array([2.0, 0.5])},
    kernel_image=np.eye(2),
    approximate_images={"fast": np.ones((2, 2))},
)


def test_the_best_is_the_most_accurate_within_the_budget() -> None:
    best = MADE.best()
    assert (best.method, best.n_components, best.error) == ("exact", 64, 0.1)
    sentence = "exact with 64 components has the smallest relative Frobenius error, 0.1, of"
    assert best.reason == f"{sentence} the 3 measured."
    assert MADE.best(norm="operator").method == "fast"
    assert MADE.best(norm="operator").n_components == 128
    # 1000 rows take ten times as long as the 100 measured ones: 1, 5 and 2 seconds.
    assert MADE.best(transform_seconds=2.0).n_components == 128
    limited = MADE.best(transform_seconds=1.5)
    assert (limited.method, limited.n_components) == ("fast", 64)
    assert limited.reason.endswith("of the 1 measured within 1.5 s for 1000 rows.")
    # Likewise 10050, 90010 and 20090 bytes.
    assert MADE.best(memory_bytes=20_090).n_components == 128
    assert MADE.best(memory_bytes=20_089).n_components == 64
    assert MADE.best(components=100, transform_seconds=2.0).n_components == 64
    assert MADE.best().to_dict()["method"] == "exact"


def test_budgets_of_the_comparison_hold_unless_others_are_given() -> None:
    made = replace(MADE, time_budget=2.0, memory_budget=20_089)
    assert made.best().n_components == 64
    assert made.best(memory_bytes=10**6).n_components == 128
    assert made.best(memory_bytes=10**6, transform_seconds=9.0).method == "exact"


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"components": 63}, "components=63 is too little.*64 features, by fast"),
        ({"transform_seconds": 0.5}, "transform_seconds=0.5 is too little.*1 s for 1000 rows"),
        ({"memory_bytes": 9}, "memory_bytes=9 is too little.*9.81 KiB for 1000 rows, by fast"),
        ({"transform_seconds": math.nan}, "transform_seconds=nan is out of range"),
        ({"memory_bytes": 0}, "memory_bytes=0 is out of range"),
        ({"norm": "nuclear"}, "norm='nuclear' is unknown; use one of 'frobenius', 'operator'"),
    ],
)
def test_budgets_that_nothing_is_within(budget: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MADE.best(**budget)


def test_equal_errors_are_decided_by_time() -> None:
    slow = replace(FAST, method="slow", transform_seconds=9.0)
    assert replace(MADE, measurements=(slow, FAST)).best().method == "fast"


def test_the_table_has_every_measurement_in_order() -> None:
    lines = MADE.table().splitlines()
    assert repr(MADE) == MADE.table()
    assert lines[0].startswith("Polynomial(degree=2) on 1000 × 5: fitted on 100 rows")
    assert [line.split()[:2] for line in lines[3:6]] == [
        ["64", "exact"],
        ["64", "fast"],
        ["128", "fast"],
    ]
    assert "0.4 ± 0.01" in lines[4]
    assert "0.5 … 2" in lines[4]
    assert "broken with 64 components failed: it broke" in lines
    assert lines[-1] == "The exact kernel of the measured rows takes 250 ms and 78.1 KiB."


def test_errors_that_are_not_finite_do_not_spoil_the_dictionary() -> None:
    made = replace(MADE, spectrum=np.array([np.inf, np.nan, 1.0]))
    assert json.loads(json.dumps(made.to_dict(), allow_nan=False))["spectrum"] == [None, None, 1.0]


def test_the_dictionary_goes_through_json() -> None:
    figures = json.loads(json.dumps(MADE.to_dict(), allow_nan=False))
    assert figures == MADE.to_dict()
    assert figures["data_shape"] == [1000, 5]
    assert figures["spectrum"] == [3.0, 1.0]
    assert figures["approximate_spectra"] == {"fast": [2.0, 0.5]}
    assert figures["exact"] == {"seconds": 0.25, "bytes": 80_000}
    first, _, broken, _ = figures["measurements"]
    assert first["spectral"] == [0.5, 2.0]
    assert first["memory_bytes"] == 1050
    assert broken["frobenius"] is None
    assert broken["error_message"] == "it broke"


def test_the_frame_has_a_row_for_every_measurement() -> None:
    frame = MADE.to_frame()
    assert frame["method"].tolist() == ["fast", "exact", "broken", "fast"]
    assert frame["memory_bytes"].tolist() == [1050, 9010, 0, 2090]
    assert frame["frobenius"].isna().tolist() == [False, False, True, False]


def test_without_pandas_there_is_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without_pandas(name: str, *rest: Any, **named: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return load(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="pip install pandas"):
        MADE.to_frame()


def test_results_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        FAST.frobenius = 0.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        MADE.complete = False  # type: ignore[misc]


def test_the_page_appears_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_text("the old one")

    def interrupted(comparison: Comparison) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("powersketch.comparison.page.page_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MADE.save_html(path)
    assert path.read_text() == "the old one"
    assert [*tmp_path.iterdir()] == [path]


def test_a_measured_comparison_has_a_page(tmp_path: Path) -> None:
    found = compare(unit_rows(30), Polynomial(2), methods=["power"], components=[4], seeds=1)
    found.save_html(str(tmp_path / "page.html"))
    assert "power" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_file_that_is_written_at_once_replaces_the_old_one(tmp_path: Path) -> None:
    with replaced(tmp_path / "file") as unfinished:
        unfinished.write_text("new")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_text() == "new"
    assert len([*tmp_path.iterdir()]) == 1


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
