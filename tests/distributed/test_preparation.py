"""What comes before a model: tables and metrics, learned from a sample and applied lazily."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from powersketch import (
    GaussianSketch,
    LearnedMetric,
    SketchedKernelRidge,
    TablePreparation,
)
from powersketch.exceptions import InputError, InputTypeError
from tests.distributed.dask_data import in_blocks, many_rows_from, relative_difference, waves


@pytest.fixture(autouse=True)
def _in_this_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def a_table(rows: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return columns of numbers with gaps and of categories, and a target."""
    X, y = waves(rows)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["colour"] = np.where(X[:, 3] > 0.5, "red", "blue")
    table.loc[::7, "a"] = np.nan
    return table, pd.Series(y + (X[:, 3] > 0.5), name="y")


class TestTables:
    """TablePreparation of Dask DataFrames."""

    table, y = a_table(900)
    given = dd.from_pandas(table, npartitions=4)

    def test_the_lazy_array_is_what_it_says(self) -> None:
        preparation = TablePreparation().fit(self.given)
        lazy, expected = preparation.transform(self.given), preparation.transform(self.table)
        assert isinstance(lazy, da.Array)
        assert (lazy.shape[1], lazy.dtype) == (expected.shape[1], expected.dtype)
        assert lazy.numblocks == (4, 1)
        np.testing.assert_array_equal(lazy.compute(), expected)

    def test_few_rows_are_all_looked_at(self) -> None:
        blocks, memory = TablePreparation().fit(self.given), TablePreparation().fit(self.table)
        assert blocks.recipe_ == memory.recipe_
        assert list(blocks.feature_names_in_) == list(self.table.columns)

    def test_of_many_rows_a_sample_does_not_depend_on_partitions(self) -> None:
        recipes = []
        with many_rows_from(100):
            for parts in (1, 4, 13):
                given = dd.from_pandas(self.table, npartitions=parts)
                preparation = TablePreparation().fit(given)
                recipes.append((preparation.recipe_, preparation.transform(self.table).tobytes()))
        assert recipes[0] == recipes[1] == recipes[2]

    def test_partitions_may_be_empty(self) -> None:
        some = self.given[self.given["b"] > 0.99]
        rows = TablePreparation().fit(self.table).transform(some)
        assert rows.compute().shape[0] == int((self.table["b"] > 0.99).sum())

    def test_a_pipeline_is_the_one_in_memory(self) -> None:
        model = SketchedKernelRidge(
            "gaussian", features="sketch", n_components=32, alpha=1.0, random_state=0, solver="gram"
        )
        pipeline = make_pipeline(TablePreparation(), clone(model))
        targets = dd.from_pandas(self.y, npartitions=4)
        with many_rows_from(400):
            pipeline.fit(self.given, targets)
            rows, coef = pipeline[0].transform(self.table), pipeline[-1].coef_
            in_memory = model.fit(rows, self.y)
        assert relative_difference(in_memory.coef_, coef) < 1e-10
        predicted = pipeline.predict(self.given).compute()
        assert relative_difference(in_memory.predict(rows), predicted) < 1e-10

    def test_arrays_are_refused(self) -> None:
        with pytest.raises(InputTypeError, match="allowed are Dask DataFrames"):
            TablePreparation().fit(in_blocks(waves(40)[0], 20))

    def test_no_rows(self) -> None:
        with pytest.raises(InputError, match="X has no rows"):
            TablePreparation().fit(self.given[self.given["b"] > 2.0])


class TestMetrics:
    """LearnedMetric of Dask arrays."""

    @pytest.mark.parametrize("weighted", [False, True])
    def test_is_the_one_in_memory_for_any_chunks(self, weighted: bool) -> None:
        X, y = waves(900)
        X[700] *= 5.0
        weights = np.random.default_rng(0).integers(0, 3, 900).astype(float)
        given = (X, y, weights) if weighted else (X, y)
        metric = LearnedMetric("diagonal", random_state=0)
        with many_rows_from(300):
            expected = metric.fit(*given).transform(X)
            for chunks in (250, (1, 400, 499)):
                metric.fit(*(in_blocks(part, chunks) for part in given))
                lazy = metric.transform(in_blocks(X, chunks))
                assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_array_equal(lazy.compute(), expected)

    def test_sparse_rows_stay_sparse(self) -> None:
        X, y = waves(200, 20)
        X[X > 0.3] = 0.0
        rows = sp.csr_array(X)
        metric = LearnedMetric("diagonal", random_state=0).fit(in_blocks(rows, 80), y)
        lazy = metric.transform(in_blocks(rows, 80))
        assert sp.issparse(lazy._meta)
        assert sp.issparse(lazy.blocks[0].compute())

    def test_a_map_follows(self) -> None:
        X, y = waves(300)
        pipeline = make_pipeline(
            LearnedMetric("diagonal", random_state=0),
            GaussianSketch("scale", n_components=16, random_state=0),
        )
        expected = pipeline.fit(X, y).transform(X)
        lazy = pipeline.fit(in_blocks(X, 100), in_blocks(y, 100)).transform(in_blocks(X, 100))
        np.testing.assert_array_equal(lazy.compute(), expected)

    def test_no_weight(self) -> None:
        X, y = waves(60)
        with pytest.raises(InputError, match="zero for every row"):
            LearnedMetric().fit(in_blocks(X, 20), y, np.zeros(60))
