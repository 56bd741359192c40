"""Tables, dictionaries, frames, recommendations and files of a comparison."""

from __future__ import annotations

import builtins
import json
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersketch import compare
from powersketch.comparison import Comparison
from powersketch.files import atomic_write
from powersketch.kernels import Polynomial
from tests.comparison.measured_rows import unit_rows
from tests.comparison.synthetic import FAST, MADE


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
    with atomic_write(tmp_path / "file") as unfinished:
        unfinished.write_text("new")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_text() == "new"
    assert len([*tmp_path.iterdir()]) == 1
