"""Lazy arrays are what they say they are, and what an estimator gives in memory."""

from __future__ import annotations

import math
import pickle
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from powersketch import (
    GaussianSketch,
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
)
from powersketch.exceptions import InputError, InputTypeError
from tests.distributed.dask_data import in_blocks, waves
from tests.feature_maps.cases import CASES

MAPS: dict[str, Any] = {name: case.sketch for name, case in CASES.items()}
MAPS["landmarks"] = lambda: LeverageNystroem(n_components=10, random_state=0)


@pytest.fixture(autouse=True)
def _in_this_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("name", sorted(MAPS))
def test_every_map_declares_what_it_computes(name: str, sparse: bool) -> None:
    case = CASES.get(name)
    X = CASES["exact"].rows(37) if case is None else case.rows(37, np.float32)
    X = sp.csr_array(X) if sparse else X
    given = in_blocks(X, 16)
    sketch = MAPS[name]().fit(X)
    lazy, Z = sketch.transform(given), sketch.transform(X)
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == (Z.shape, Z.dtype)
    assert lazy.chunks == ((16, 16, 5), (Z.shape[1],))
    assert type(lazy._meta) is np.ndarray
    blocks = [block.compute() for block in lazy.blocks]
    assert [block.shape for block in blocks] == [(16, Z.shape[1])] * 2 + [(5, Z.shape[1])]
    assert {block.dtype for block in blocks} == {Z.dtype}
    if name == "landmarks":
        np.testing.assert_allclose(np.concatenate(blocks), Z, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(np.concatenate(blocks), Z)


def test_nothing_is_computed_and_the_graph_holds_no_rows() -> None:
    def refuse(block: Any) -> Any:
        assert not block.size, "a block was computed"
        return block

    X = waves(4000, 20)[0]
    given = da.zeros((4_000_000, 20), chunks=(1000, 20)).map_blocks(refuse, meta=np.empty((0, 20)))
    sketch = PolynomialSketch(3, n_components=64, random_state=0).fit(X)
    lazy = sketch.transform(given)
    assert lazy.shape == (4_000_000, 64)
    assert len(pickle.dumps(sketch)) < 20_000
    assert sum("PolynomialSketch" in str(key) for key in lazy.dask.layers) == 1


def test_models_predict_lazily() -> None:
    X, y = waves(400)
    given, new = in_blocks(X, 150), X
    model = SketchedKernelRidge("gaussian", features="sketch", random_state=0).fit(X, y)
    mean, std = model.predict(given, return_std=True)
    assert mean.shape == std.shape == (400,)
    for lazy, values in zip((mean, std), model.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(lazy.compute(), values, rtol=1e-10)
    labels = np.where(y > 1.0, "high", "low")
    classifier = SketchedKernelRidgeClassifier("gaussian", features="sketch", random_state=0)
    classifier.fit(X, labels)
    assert (classifier.predict(given).compute() == classifier.predict(X)).all()
    for method in ("predict_proba", "decision_function"):
        lazy, values = getattr(classifier, method)(given), getattr(classifier, method)(X)
        assert (lazy.shape, lazy.dtype) == (values.shape, values.dtype)
        np.testing.assert_allclose(lazy.compute(), values, rtol=1e-8, atol=1e-10)
    assert classifier.score(given, da.from_array(labels)) == classifier.score(X, labels)


def test_lengths_of_blocks_may_be_unknown() -> None:
    X = waves(300)[0]
    lazy_rows = in_blocks(X, 100)
    unknown = lazy_rows[lazy_rows[:, 0] > 0.5]
    sketch = GaussianSketch(0.5, n_components=32, random_state=0).fit(X)
    lazy = sketch.transform(unknown)
    assert math.isnan(lazy.shape[0])
    assert lazy.shape[1] == 32
    np.testing.assert_array_equal(lazy.compute(), sketch.transform(X[X[:, 0] > 0.5]))


def test_blocks_may_be_empty() -> None:
    X = waves(40)[0]
    given = in_blocks(X, (20, 0, 20))
    sketch = GaussianSketch(0.5, n_components=8, random_state=0).fit(given)
    np.testing.assert_array_equal(sketch.transform(given).compute(), sketch.transform(X))


def test_data_frames_keep_the_names_of_columns() -> None:
    table = pd.DataFrame(waves(100)[0], columns=list("abcd"))
    given = dd.from_pandas(table, npartitions=3)
    sketch = GaussianSketch(0.5, n_components=16, random_state=0).fit(given)
    assert list(sketch.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(sketch.transform(given).compute(), sketch.transform(table))
    with pytest.raises(ValueError, match="feature names"):
        sketch.transform(given.rename(columns={"a": "z"}))


def test_fit_transform_is_lazy_too() -> None:
    X = waves(100)[0]
    lazy = GaussianSketch(0.5, n_components=16, random_state=0).fit_transform(in_blocks(X, 40))
    expected = GaussianSketch(0.5, n_components=16, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(lazy.compute(), expected)


class TestBadInput:
    """Refused with what to do instead, and with the block at fault."""

    X = waves(60)[0]
    sketch = GaussianSketch(0.5, n_components=8, random_state=0).fit(X)

    @pytest.mark.parametrize("method", ["fit", "transform"])
    def test_divided_columns(self, method: str) -> None:
        given = da.from_array(self.X, chunks=(20, 2))
        with pytest.raises(InputError, match=r"divided into 2 chunks.*X\.rechunk\(\{1: -1\}\)"):
            getattr(self.sketch, method)(given)

    @pytest.mark.parametrize("method", ["fit", "transform"])
    def test_missing_numbers_are_named_by_block(self, method: str) -> None:
        X = self.X.copy()
        X[45, 1] = np.nan
        with pytest.raises(InputError, match=r"block 2 of X.*NaN"):
            dask.compute(getattr(self.sketch, method)(in_blocks(X, 20)))

    @pytest.mark.parametrize("method", ["fit", "transform"])
    def test_mixed_types_of_blocks(self, method: str) -> None:
        def mixed(block: Any, block_id: Any = (0,)) -> Any:
            return sp.csr_array(block) if block_id[0] == 1 else block

        given = in_blocks(self.X, 20).map_blocks(mixed, meta=np.empty((0, 4)))
        with pytest.raises(InputTypeError, match=r"block 1 of X is a csr_array.*ndarray"):
            dask.compute(getattr(self.sketch, method)(given))

    def test_outputs_that_would_be_loaded(self) -> None:
        sketch = GaussianSketch(0.5, n_components=8).fit(self.X).set_output(transform="pandas")
        with pytest.raises(InputError, match="set_output"):
            sketch.transform(in_blocks(self.X, 20))

    def test_columns_that_are_no_numbers(self) -> None:
        table = pd.DataFrame({"a": self.X[:, 0], "b": ["x"] * 60})
        with pytest.raises(InputTypeError, match=r"no numbers: b"):
            self.sketch.fit(dd.from_pandas(table, npartitions=2))

    def test_other_collections(self) -> None:
        with pytest.raises(InputTypeError, match="allowed are Dask arrays"):
            self.sketch.fit(dask.delayed(self.X))

    def test_what_takes_rows_in_memory_does_not_load_them(self) -> None:
        from powersketch.accuracy import certify

        with pytest.raises(InputTypeError, match=r"rows in memory.*X\.compute\(\)"):
            certify(self.sketch, in_blocks(self.X, 20))
        with pytest.raises(InputTypeError, match="too, or the other one"):
            SketchedKernelRidge().fit(self.X, da.from_array(self.X[:, 0]))
        with pytest.raises(InputTypeError, match="rows in memory"):
            SketchedKernelRidge("gaussian").partial_fit(in_blocks(self.X, 20), self.X[:, 0])
