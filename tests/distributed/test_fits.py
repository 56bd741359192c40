"""Fits on blocks are those in memory, however rows are divided."""

from __future__ import annotations

from typing import Any
from unittest import mock

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
)
from powersketch.distributed import systems
from powersketch.distributed.blocks import RowBlocks
from powersketch.exceptions import InputError, OutlierWarning
from powersketch.feature_maps.choice_rows import ChoiceRows, spread_numbers
from powersketch.kernels import Gaussian
from tests.distributed.dask_data import in_blocks, many_rows_from, relative_difference, waves

CHUNKS = (70_000, 9_973, (1, 40_000, 29_999))


@pytest.fixture(autouse=True)
def _in_this_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


class TestSample:
    """Which rows are looked at depends on their numbers only."""

    def test_one_of_every_part(self) -> None:
        numbers = spread_numbers(10**9 + 7, 1000)
        assert (np.diff(numbers) > 0).all()
        parts = numbers * 1000 // (10**9 + 7)
        assert (np.abs(parts - np.arange(1000)) <= 1).all()
        # Neither the first nor the middle of every part.
        assert np.std(numbers % (10**6)) > 2e5

    def test_all_of_few(self) -> None:
        assert spread_numbers(101, 100).tolist() == list(range(101))
        assert spread_numbers(102, 100).size == 100

    @pytest.mark.parametrize("rows", [1, 7, 300, 999])
    def test_blocks_merge_to_that_of_all_rows(self, rows: int) -> None:
        X = waves(1000)[0]
        X[700] *= 3.0
        X[123] = 1e20
        whole = ChoiceRows.of_all(X, 50)
        starts = range(0, 1000, rows)
        parts = [
            ChoiceRows.of(X[s : s + rows], np.arange(1000)[s : s + rows], 1000, 50) for s in starts
        ]
        merged = ChoiceRows.merged(parts)
        if rows >= 300:
            assert merged.far.tolist() == whole.far.tolist() == [123]
        kept = merged.numbers != 123
        np.testing.assert_array_equal(merged.numbers[kept], whole.numbers) if rows > 5 else None
        assert {700} <= set(whole.numbers.tolist())


@pytest.mark.parametrize(
    "sketch",
    [
        GaussianSketch("scale", n_components=24, random_state=0),
        PolynomialSketch(3, coef0=1, n_components=24, random_state=0),
        PolynomialSketch(3, gamma="median", n_components=16, compress_from=32, random_state=0),
        DotProductSketch("exp", n_components=24, random_state=0),
        ArcCosineSketch(n_components=24, random_state=0),
        LeverageNystroem("gaussian", n_components=12, random_state=0),
        GaussianSketch(0.3, n_components="auto", eps=0.2, random_state=0),
    ],
    ids=lambda sketch: type(sketch).__name__,
)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_maps_of_many_rows_have_the_same_bits(sketch: Any, sparse: bool) -> None:
    X = waves(70_000)[0].astype(np.float32)
    given = sp.csr_array(X) if sparse else X
    expected = sketch.fit(given).transform(X[:50])
    for chunks in CHUNKS[1:]:
        fitted = sketch.fit(in_blocks(given, chunks))
        np.testing.assert_array_equal(fitted.transform(X[:50]), expected)
    if isinstance(sketch, LeverageNystroem):
        np.testing.assert_array_equal(np.asarray(X[sketch.landmark_indices_]), _dense(sketch))


def _dense(sketch: Any) -> Any:
    landmarks = sketch.landmarks_
    return landmarks.toarray() if sp.issparse(landmarks) else landmarks


@pytest.mark.parametrize(
    "sketch",
    [
        PolynomialSketch(3, expansion="none", n_components=16, random_state=0),
        PolynomialSketch(2, coef0=1.0, n_components=100, random_state=0),
        ArcCosineSketch(method="random", n_components=16, random_state=0),
    ],
)
def test_oblivious_maps_look_at_nothing(sketch: Any) -> None:
    def refuse(block: Any) -> Any:
        assert not block.size, "a block was computed"
        return block

    X = waves(300)[0]
    given = in_blocks(X, 100).map_blocks(refuse, meta=np.empty((0, 4)))
    bits = sketch.fit(given).transform(X)
    np.testing.assert_array_equal(bits, sketch.fit(X).transform(X))


class TestScale:
    """gamma="scale" is scikit-learn's 1 / (d · X.var()), of all rows and not of a sample."""

    X, y = waves(20_000)
    X[-100:] *= 3.0
    expected = 1.0 / (4 * X.var())

    @pytest.mark.parametrize(
        "sketch",
        [
            GaussianSketch("scale", n_components=16, random_state=0),
            DotProductSketch("exp", gamma="scale", n_components=16, random_state=0),
            PolynomialSketch(2, gamma="scale", n_components=16, random_state=0),
        ],
        ids=lambda sketch: type(sketch).__name__,
    )
    def test_of_maps(self, sketch: Any) -> None:
        in_memory = sketch.fit(self.X).kernel_.gamma
        assert in_memory == pytest.approx(self.expected, rel=1e-14)
        assert sketch.fit(in_blocks(self.X, 7_001)).kernel_.gamma == in_memory

    @pytest.mark.parametrize("features", ["sketch", "landmarks", "map", "landmark map"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_of_models(self, features: str, weighted: bool) -> None:
        maps = {
            "map": GaussianSketch("scale", n_components=16),
            "landmark map": LeverageNystroem("gaussian", n_components=16),
        }
        named: dict[str, Any] = {"kernel": "gaussian", "features": features, "n_components": 16}
        options = {"features": maps[features]} if features in maps else named
        weights = np.random.default_rng(0).integers(1, 4, 20_000)
        counts = weights if weighted and features != "landmark map" else None
        expected = 1.0 / (4 * (self.X if counts is None else self.X.repeat(counts, axis=0)).var())
        model = SketchedKernelRidge(**options, alpha=1.0, solver="gram", random_state=0)
        given = (weights.astype(float),) if weighted else ()
        with many_rows_from(1000):
            in_memory = model.fit(self.X, self.y, *given).kernel_.gamma
            assert in_memory == pytest.approx(expected, rel=1e-13)
            blocks = (in_blocks(part, 7_001) for part in (self.X, self.y, *given))
            assert model.fit(*blocks).kernel_.gamma == in_memory

    def test_of_kernel_systems(self) -> None:
        rows = RowBlocks.of("X", in_blocks(self.X, 7_001))
        with mock.patch.object(systems, "MOST_CHOICE_ROWS", 1000):
            resolved = systems._resolved(Gaussian("scale"), rows)
        assert resolved.gamma == Gaussian("scale").resolve(self.X).gamma


def test_far_rows_are_named_by_their_numbers() -> None:
    X = waves(300)[0]
    X[250] = 1e20
    with pytest.warns(OutlierWarning, match=r"row 250 \("):
        sketch = GaussianSketch(0.5, n_components=16, random_state=0).fit(in_blocks(X, 100))
    others = np.delete(X, 250, axis=0)
    clean = GaussianSketch(0.5, n_components=16, random_state=0).fit(others)
    np.testing.assert_array_equal(sketch.transform(others), clean.transform(others))


MODELS = {
    "sketch": {"kernel": "gaussian", "features": "sketch", "alpha": 1.0},
    "landmarks": {"kernel": "gaussian", "features": "landmarks", "alpha": "loo"},
    "gcv": {"kernel": "poly", "features": "sketch", "alpha": "gcv"},
    "map": {"features": PolynomialSketch(3, coef0=1), "alpha": 0.1},
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_ridge_equals_the_fit_in_memory_for_any_chunks(name: str) -> None:
    X, y = waves(70_000)
    weights = np.random.default_rng(0).integers(0, 3, 70_000).astype(float)
    model = SketchedKernelRidge(**MODELS[name], n_components=24, random_state=0, solver="gram")
    model.fit(X, y, weights)
    coef, intercept, alpha = model.coef_, model.intercept_, model.alpha_
    for chunks in CHUNKS:
        model.fit(in_blocks(X, chunks), in_blocks(y, 30_000), in_blocks(weights, 8_000))
        assert model.alpha_ == pytest.approx(alpha, rel=1e-12)
        assert relative_difference(coef, model.coef_) < 1e-10
        assert relative_difference(intercept, model.intercept_) < 1e-10
    assert model.n_features_in_ == 4
    assert model.statistics_.count == np.count_nonzero(weights)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
def test_classifiers_equal_the_fit_in_memory(class_weight: Any) -> None:
    X, y = waves(900)
    labels = np.digitize(y, [0.5, 1.2])
    X[:300], labels[:300] = X[labels < 2][:300], labels[labels < 2][:300]
    model = SketchedKernelRidgeClassifier(
        "gaussian",
        features="sketch",
        n_components=40,
        class_weight=class_weight,
        random_state=0,
        solver="gram",
    )
    with many_rows_from(400):
        coef = model.fit(X, labels).coef_
        chances = model.predict_proba(X)
        # No block needs to have all classes.
        model.fit(in_blocks(X, 100), in_blocks(labels, 100))
    assert model.classes_.tolist() == [0, 1, 2]
    assert relative_difference(coef, model.coef_) < 1e-10
    assert relative_difference(chances, model.predict_proba(X)) < 1e-6


def test_everything_chosen_is_the_same() -> None:
    X, y = waves(700)
    model = SketchedKernelRidge(n_components=32, random_state=0, solver="gram")
    with many_rows_from(300):
        coef, choice = model.fit(X, y).coef_, str(model.choice_)
        model.fit(in_blocks(X, 133), in_blocks(y, 133))
    assert str(model.choice_).partition("; relative")[0] == choice.partition("; relative")[0]
    assert relative_difference(coef, model.coef_) < 1e-10


def test_rows_that_targets_come_from_are_computed_once_in_every_pass() -> None:
    computed = []

    def counted(block: Any) -> Any:
        computed.append(block.shape[0])
        return block

    X = in_blocks(waves(900)[0], 100).map_blocks(counted, meta=np.empty((0, 4)))
    y = X.map_blocks(lambda block: np.sin(block[:, 0]), drop_axis=1, meta=np.empty(0))
    model = SketchedKernelRidge("gaussian", features="sketch", alpha=1.0, random_state=0)
    computed.clear()
    with many_rows_from(400):
        model.fit(X, y)
    passes = 2
    assert len(computed) == passes * 9


def test_few_rows_are_fitted_in_memory_to_the_bit() -> None:
    X, y = waves(500)
    model = SketchedKernelRidge("gaussian", random_state=0)
    expected = model.fit(X, y).predict(X)
    table = pd.DataFrame(X, columns=list("abcd"))
    model.fit(dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3))
    np.testing.assert_array_equal(model.predict(table), expected)


def test_sparse_rows_stay_sparse() -> None:
    X, y = waves(800, 50)
    X[X > 0.2] = 0.0
    rows = sp.csr_array(X)
    model = SketchedKernelRidge("poly", features="sketch", alpha=1.0, random_state=0, solver="gram")
    with many_rows_from(300):
        coef = model.fit(rows, y).coef_
        model.fit(in_blocks(rows, 150), y)
    assert relative_difference(coef, model.coef_) < 1e-10


class TestFarRows:
    """Left out of sums where the kernel grows with them."""

    def test_are_named_and_change_nothing(self) -> None:
        X, y = waves(900)
        X[700] = 1e12
        model = SketchedKernelRidge(
            "poly", features="sketch", alpha=1.0, random_state=0, solver="gram"
        )
        with many_rows_from(400):
            with pytest.warns(OutlierWarning, match=r"row 700 \(.*They were left out"):
                coef = model.fit(X, y).coef_
            with pytest.warns(OutlierWarning, match=r"row 700 \(.*They were left out"):
                model.fit(in_blocks(X, 100), y)
        assert relative_difference(coef, model.coef_) < 1e-10


class TestBadInput:
    """Refused before anything is stored."""

    X, y = waves(900)

    def fit(self, X: Any, y: Any, weights: Any = None, **params: Any) -> None:
        params = {"features": "sketch", "alpha": 1.0} | params
        with many_rows_from(400):
            SketchedKernelRidge("gaussian", **params).fit(X, y, weights)

    def test_numbers_of_rows(self) -> None:
        with pytest.raises(InputError, match="y has 899 rows and X has 900"):
            self.fit(in_blocks(self.X, 100), in_blocks(self.y[:-1], 100))

    def test_blocks_of_unknown_lengths_that_do_not_match(self) -> None:
        rows = in_blocks(self.X, 100)
        y = in_blocks(self.y, 100)
        with pytest.raises(InputError, match=r"y has 899 rows|in block 0 of X.*y has"):
            self.fit(rows, y[1:][da.from_array(np.ones(899, bool), chunks=y[1:].chunks)])

    def test_missing_targets_are_named_by_block(self) -> None:
        y = self.y.copy()
        y[555] = np.nan
        with pytest.raises(InputError, match=r"block 5 of X, which begins at row 500.*y contains"):
            self.fit(in_blocks(self.X, 100), in_blocks(y, 100))

    def test_features_that_need_all_rows(self) -> None:
        with pytest.raises(InputError, match="needs all 900 rows in memory"):
            self.fit(in_blocks(self.X, 100), self.y, features="exact")

    def test_no_weight(self) -> None:
        with pytest.raises(InputError, match="zero for every row"):
            self.fit(in_blocks(self.X, 100), self.y, np.zeros(900))

    def test_bad_parameters_before_any_block(self) -> None:
        def refuse(block: Any) -> Any:
            assert not block.size, "a block was computed"
            return block

        given = in_blocks(self.X, 100).map_blocks(refuse, meta=np.empty((0, 4)))
        with pytest.raises(InputError, match="alpha"):
            self.fit(given, self.y, alpha=-1.0)

    def test_a_failed_fit_leaves_the_last_one(self) -> None:
        model = SketchedKernelRidge("gaussian", features="sketch", alpha=1.0, random_state=0)
        with many_rows_from(400):
            coef = model.fit(in_blocks(self.X, 100), self.y).coef_
            X = self.X.copy()
            X[850] = np.inf
            with pytest.raises(InputError, match="block 8"):
                model.fit(in_blocks(X, 100), self.y)
        np.testing.assert_array_equal(model.coef_, coef)


def test_where_blocks_lie_in_memory_changes_no_bit() -> None:
    def moved(block: Any) -> Any:
        # As if it had come from another worker: beginning at an odd byte. Of fewer numbers than
        # NumPy takes at a time, sums would have the same bits.
        memory = np.empty(block.nbytes + 1, np.uint8)
        elsewhere = np.frombuffer(memory.data, block.dtype, block.size, 1).reshape(block.shape)
        elsewhere[...] = block
        return elsewhere

    X, y = waves(60_000)
    model = SketchedKernelRidge("gaussian", features="sketch", alpha=1.0, random_state=0)
    rows, targets = in_blocks(X, 20_000), in_blocks(y, 20_000)
    with many_rows_from(400):
        coef = model.fit(rows, targets).coef_
        model.fit(rows.map_blocks(moved), targets.map_blocks(moved))
    np.testing.assert_array_equal(model.coef_, coef)
