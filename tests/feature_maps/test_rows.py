"""The size of batches, and how batches are cut and copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from powersketch.feature_maps.maps import batch_rows, contiguous_batches
from tests.feature_maps.cases import assert_same_bits, each_float, unaligned, uncentred

WIDE = 1 << 20  # outputs of a row: a batch is one group of 32 rows


class TestBatchRows:
    @given(
        columns=st.integers(1, 300),
        size=st.integers(1, 10**6),
        threads=st.integers(1, 64),
        dtype=st.sampled_from([np.float32, np.float64]),
    )
    def test_whole_groups_within_a_few_mebibytes(
        self, columns: int, size: int, threads: int, dtype: Any
    ) -> None:
        X = np.empty((1, columns), dtype)
        rows, group = batch_rows(X, size, threads), 32 * threads
        width = max(columns, size) * X.itemsize
        assert rows % group == 0
        assert rows >= group
        assert rows == group or rows * width <= 4 << 20
        assert (rows + group) * width > 4 << 20

    def test_sparse_rows_count_by_their_entries(self) -> None:
        empty = sp.csr_array((1000, 10**6))
        assert batch_rows(empty, 100, 1) == batch_rows(np.empty((1, 1)), 100, 1)
        full = sp.csr_array(np.ones((10, 500)))
        assert batch_rows(full, 100, 1) == batch_rows(np.ones((10, 500)), 100, 1)


class TestContiguousBatches:
    @given(count=st.integers(1, 100), threads=st.integers(1, 3))
    def test_every_row_once_and_in_order(self, count: int, threads: int) -> None:
        X = np.arange(3.0 * count).reshape(count, 3)
        parts, blocks = zip(*contiguous_batches(X, WIDE, threads), strict=True)
        assert [part.start for part in parts] == list(range(0, count, 32 * threads))
        assert parts[-1].stop == count
        assert_same_bits(np.concatenate(blocks), X)

    @each_float
    def test_plain_rows_are_not_copied(self, dtype: Any) -> None:
        X = np.ones((50, 3), dtype)
        assert all(np.shares_memory(block, X) for _, block in contiguous_batches(X, WIDE))

    @each_float
    @pytest.mark.parametrize("layout", [np.asfortranarray, unaligned])
    def test_others_are_copied_batch_by_batch(self, dtype: Any, layout: Any) -> None:
        X = layout(uncentred(50, 3, dtype))
        for part, block in contiguous_batches(X, WIDE):
            assert block.flags.c_contiguous
            assert block.flags.aligned
            assert_same_bits(block, np.ascontiguousarray(X[part]))

    def test_sparse_rows_stay_sparse(self) -> None:
        X = sp.csr_array(uncentred(50, 30))
        blocks = [block for _, block in contiguous_batches(X, WIDE)]
        assert [block.shape[0] for block in blocks] == [32, 18]
        np.testing.assert_array_equal(sp.vstack(blocks).toarray(), X.toarray())
