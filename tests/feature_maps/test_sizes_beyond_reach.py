"""Sizes that no index or no memory can hold are refused by `fit`, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from powersketch import GaussianSketch, LeverageNystroem, PolynomialSketch
from powersketch.exceptions import InputError
from powersketch.random_streams import RandomStreams
from tests.feature_maps.cases import ESTIMATORS, uncentred

X = uncentred(20, 30)
LARGEST = 2**30
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.__name__)


@pytest.mark.parametrize("size", [LARGEST + 1, 2**63, 10**30])
@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS, LeverageNystroem], ids=lambda estimator: estimator.__name__
)
def test_more_components_than_an_index_can_tell_apart(estimator: Any, size: int) -> None:
    with pytest.raises(InputError, match=rf"n_components={size} is out of range.* to {LARGEST}"):
        estimator(n_components=size).fit(X)


@each_estimator
@pytest.mark.parametrize("length", [LARGEST + 1, 2**31, 10**30])
def test_longer_powers_than_an_index_can_tell_apart(estimator: Any, length: int) -> None:
    refused = rf"internal_components={length} is out of range.* to {LARGEST}"
    with pytest.raises(InputError, match=refused):
        estimator(internal_components=length).fit(X)


@pytest.mark.parametrize(
    ("columns", "sketch"),
    [
        (30, PolynomialSketch(5, internal_components=2**16, expansion="none")),
        (30, PolynomialSketch(5, internal_components=2**16, method="tree", expansion="none")),
        (30, PolynomialSketch(5, n_components=2**18, method="ctr", expansion="none")),
        (900, PolynomialSketch(5, n_components=128, base_sketch="gaussian", expansion="none")),
        (70_000, PolynomialSketch(5, n_components=64, base_sketch="osnap", expansion="none")),
        (70_000, PolynomialSketch(5, n_components=64, base_sketch="srht", expansion="none")),
        (30, GaussianSketch(n_components=2**17, method="fourier")),
    ],
    ids=str,
)
def test_more_than_the_memory_that_is_available(
    columns: int, sketch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersketch.execution.available_memory", lambda: 2**20)
    drawn: list[int] = []
    for name in ("permutation", "normal", "signs"):
        monkeypatch.setattr(RandomStreams, name, _counting(getattr(RandomStreams, name), drawn))
    with pytest.raises(InputError, match=r"takes at least .* GiB of memory, and .* are available"):
        sketch.set_params(random_state=0).fit(np.ones((4, columns)))
    assert max(drawn, default=0) <= 128, "much was drawn before the size was looked at"


def _counting(draw: Callable[..., Any], drawn: list[int]) -> Callable[..., Any]:
    def counted(streams: RandomStreams, name: str, count: int) -> Any:
        drawn.append(count)
        return draw(streams, name, count)

    return counted
