"""A budget of memory gives the size that it really allows, or says which budget would do."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

from powersketch.comparison.measure import peak_bytes
from powersketch.kernel_ridge import SketchedKernelRidge
from powersketch.kernel_ridge.accumulation import BLOCK_BYTES, row_blocks
from powersketch.kernel_ridge.memory_needs import bytes_of_block, bytes_of_fit
from tests.kernel_ridge.ridge_data import Float64, waves


def blocks(rows: int, columns: int) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rows, columns))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * generator.standard_normal(rows)


@pytest.mark.parametrize(
    ("rows", "budget", "least"),
    [(1000, 20e6, 256), (1000, 10e6, 128), (6000, 50e6, 512), (20_000, 20e6, 256)],
)
@pytest.mark.parametrize("alpha", [1.0, "loo", "gcv"])
def test_a_fit_takes_no_more_than_it_may(
    rows: int, budget: float, least: int, alpha: float | str
) -> None:
    X, y = blocks(rows, 6)
    model = SketchedKernelRidge("auto", memory_budget=budget, alpha=alpha, random_state=0)
    model.fit(X, y)  # What is imported for the first time does not count.
    assert peak_bytes(lambda: model.fit(X, y)) <= budget
    assert model.choice_.n_components >= least
    assert peak_bytes(lambda: model.predict(X)) <= budget


def test_a_larger_budget_allows_more_features() -> None:
    X, y = blocks(2000, 5)
    sizes = [
        SketchedKernelRidge("auto", memory_budget=budget, random_state=0)
        .fit(X, y)
        .choice_.n_components
        for budget in (9.5e6, 20e6, 100e6, 300e6)
    ]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("rows", [100, 1000])
def test_the_advised_budget_is_enough(rows: int) -> None:
    X, y = waves(rows)
    model = SketchedKernelRidge("auto", memory_budget=1000, random_state=0)
    with pytest.warns(UserWarning, match="even 32 features .* more than memory_budget=1000") as w:
        model.fit(X, y)
    advised = int(re.search(r"give memory_budget=(\d+) or more", str(w[0].message))[1])  # type: ignore[index]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(memory_budget=advised).fit(X, y)
    assert model.choice_.n_components == 32
    with pytest.warns(UserWarning, match="more than memory_budget"):
        model.set_params(memory_budget=advised - 1).fit(X, y)


def test_the_advised_budgets_of_both_kinds_are_enough() -> None:
    X, y = waves(1000)
    model = SketchedKernelRidge("auto", memory_budget=1000, time_budget=1e-9, random_state=0)
    with pytest.warns(UserWarning, match="bytes, more than .* s, more than time_budget=1e-09") as w:
        model.fit(X, y)
    found: Any = re.search(r"memory_budget=(\d+) and time_budget=(\S+) or", str(w[0].message))
    # What is predicted from measured times varies more on a busy machine than the advice allows.
    model.set_params(memory_budget=int(found[1]), time_budget=100 * float(found[2]))
    assert model.fit(X, y).choice_.n_components == 32


def test_few_rows_keep_to_a_budget_as_well() -> None:
    X, y = waves(120)
    whole = SketchedKernelRidge("auto", memory_budget=1e8, random_state=0).fit(X, y)
    assert whole.choice_.n_components == 120
    part = SketchedKernelRidge("auto", memory_budget=8.9e6, random_state=0).fit(X, y)
    assert part.choice_.n_components == 64
    assert "memory is limited" in part.choice_.reason


def test_blocks_get_shorter_where_memory_is_scarce() -> None:
    assert bytes_of_block(None, 100, 5) == BLOCK_BYTES
    need = bytes_of_fit(10**6, 500, 5)
    limit = bytes_of_block(need, 500, 5)
    assert [part.stop for part in row_blocks(200, 500, limit)] == [64, 128, 192, 200]
    assert bytes_of_block(1e12, 500, 5) == BLOCK_BYTES
    assert bytes_of_block(1.0, 500, 5) == 0


def test_blocks_that_are_added_keep_to_the_budget() -> None:
    X, y = blocks(3000, 6)
    model = SketchedKernelRidge("auto", memory_budget=10e6, random_state=0)
    model.partial_fit(X, y)
    assert peak_bytes(lambda: model.partial_fit(X, y)) <= 10e6
