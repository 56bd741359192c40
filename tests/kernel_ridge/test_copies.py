"""Copies of a row are one row of a larger weight, and observations of one point are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch import SketchedKernelRidge
from powersketch.kernel_ridge.choosing import pilot
from powersketch.kernel_ridge.choosing.pilot import without_copies
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from tests.kernel_ridge.ridge_data import ridge, waves, weights

CONTAINERS = [np.asarray, np.asfortranarray, np.float32, sp.csr_array]


def shuffled(times: Any) -> tuple[Any, Any, Any]:
    X, y = waves(30)
    order = np.random.default_rng(0).permutation(int(np.sum(times)))
    origins = np.repeat(range(30), times)[order]
    return X[origins], y[origins], origins


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("weighted", [True, False])
def test_their_weights_are_added(container: Any, weighted: bool) -> None:
    times = np.random.default_rng(1).integers(1, 4, 30)
    X, y, origins = shuffled(times)
    w = weights(len(y)) if weighted else None
    found = without_copies(TrainingRows(container(X), y, w))
    assert found.count == 30
    for row, target, weight, number in zip(
        found.X.toarray() if sp.issparse(found.X) else found.X,
        found.targets,
        found.weights,
        found.numbers,
        strict=True,
    ):
        same = origins == origins[number]
        np.testing.assert_allclose(row, X[number], rtol=1e-6)
        assert target == y[number]
        assert number == np.flatnonzero(same)[0]  # the first of them, in the user's numbers
        assert weight == pytest.approx(same.sum() if w is None else w[same].sum())


def test_rows_without_copies_are_returned_as_they_are() -> None:
    X, y = waves(30)
    rows = TrainingRows(X, y, None)
    assert without_copies(rows) is rows


def test_observations_of_one_point_are_no_copies() -> None:
    X, y = waves(30)
    rows = TrainingRows(np.vstack((X, X[:5], X[:5])), np.concatenate((y, y[:5], y[:5] + 1.0)), None)
    assert without_copies(rows) is rows


def test_zeros_of_both_signs_are_equal() -> None:
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]])
    for container in (np.asarray, sp.csr_array):
        assert without_copies(TrainingRows(container(X), np.zeros(3), None)).count == 2


def test_whole_numbers_and_indicators_are_told_apart() -> None:
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (2000, 30)).astype(float)
    rows = TrainingRows(X, X[:, 0], None)
    assert without_copies(rows).count == np.unique(X, axis=0).shape[0]
    assert np.unique(pilot._hashes(X)).size == np.unique(X, axis=0).shape[0]


def test_equal_hashes_of_different_rows_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pilot, "_hashes", lambda X: np.zeros(X.shape[0], dtype=np.uint64))
    X, y = waves(30)
    rows = TrainingRows(X, y, None)
    assert without_copies(rows) is rows


@pytest.mark.parametrize("parameters", [{}, {"kernel": "gaussian"}])
def test_whole_weights_choose_what_repeated_rows_choose(parameters: dict[str, Any]) -> None:
    X, y = waves(60)
    times = np.random.default_rng(1).integers(1, 4, 60)
    weighted = SketchedKernelRidge(random_state=0, **parameters).fit(X, y, times)
    repeated = SketchedKernelRidge(random_state=0, **parameters)
    repeated.fit(X.repeat(times, axis=0), y.repeat(times))
    assert repeated.alpha_ == pytest.approx(weighted.alpha_, rel=1e-6)
    np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["exact", "sketch", "landmarks"])
def test_doubled_rows_are_no_reason_for_a_smaller_penalty(kind: str) -> None:
    """With its copy still there, a row that is left out would be predicted by its own noise."""
    X, y = waves(150)
    y = y + np.random.default_rng(0).normal(size=150)
    once = ridge(features=kind, alpha="loo", random_state=0).fit(X, y)
    twice = ridge(features=kind, alpha="loo", random_state=0)
    twice.fit(np.vstack((X, X)), np.concatenate((y, y)))
    assert twice.alpha_ == pytest.approx(2.0 * once.alpha_, rel=0.5)
    assert twice.scores_.min() == pytest.approx(once.scores_.min(), rel=0.05)
