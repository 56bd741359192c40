"""What compare refuses, before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersketch import compare
from powersketch.comparison import METHODS
from powersketch.kernels import ArcCosine, Gaussian, Polynomial
from tests.comparison.measured_rows import unit_rows

KERNEL = Polynomial(2)


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
    arguments: dict[str, Any] = {"X": unit_rows(20), "kernel": KERNEL, "components": [4], **changes}
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
        compare(unit_rows(9), KERNEL, seeds=0, random_state=state)
    assert state.randint(2**31) == np.random.RandomState(0).randint(2**31)
