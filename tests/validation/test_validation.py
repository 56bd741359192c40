"""Broken sparse matrices and masked arrays are refused at every public door, before any harm."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from powersketch import GaussianSketch, PolynomialSketch, SketchedKernelRidge, routines
from powersketch.exceptions import InputError
from powersketch.kernels import Gaussian, Polynomial
from powersketch.linalg import FactorOperator, LowRankInverse, conjugate_gradients
from powersketch.routines import reference
from powersketch.validation import checked_rows, sound_array
from tests.validation.corruptions import (
    COLUMNS,
    CORRUPTIONS,
    ROWS,
    Corruption,
    masked_rows,
    sound_rows,
)
from tests.validation.entries import ENTRIES, Entry

each_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
each_corruption = pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda c: c.name)
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


class TestBrokenSparseMatrices:
    @each_corruption
    def test_what_is_wrong_is_said(self, corruption: Corruption) -> None:
        with pytest.raises(InputError, match=corruption.message) as caught:
            sound_array("X", corruption.matrix())
        assert "build the matrix anew" in str(caught.value)

    @each_entry
    def test_every_entry_refuses_all_of_them(self, entry: Entry) -> None:
        for corruption in CORRUPTIONS:
            with pytest.raises(InputError, match=corruption.message.replace("X.", "[XY].")):
                entry(corruption.matrix())

    @each_entry
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_values_must_be_finite(self, entry: Entry, value: float) -> None:
        X = sparse.csr_array(sound_rows())
        X.data[7] = value
        with pytest.raises(ValueError, match=r"NaN|infinity|finite"):
            entry(X)

    def test_operators_of_solvers(self) -> None:
        A = sparse.csr_array(np.eye(5))
        A.indices[2] = 10**6
        with pytest.raises(InputError, match=r"operator.indices\[2\] is 1000000"):
            conjugate_gradients(A, np.ones(5))

    def test_more_than_two_dimensions(self) -> None:
        with pytest.raises(InputError, match=r"shape \(4,\); allowed are two dimensions"):
            GaussianSketch().fit(sparse.coo_array(np.ones(4)))


class TestSoundSparseMatrices:
    @pytest.mark.parametrize("kind", FORMATS)
    def test_they_are_left_as_they_are(self, kind: str) -> None:
        X = sparse.coo_array(sound_rows()).asformat(kind)
        assert sound_array("X", X) is X
        np.testing.assert_array_equal(X.toarray(), sound_rows())

    @pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
    @pytest.mark.parametrize("kind", FORMATS)
    def test_nothing_stored(self, kind: str, shape: tuple[int, int]) -> None:
        X = sparse.coo_array(shape).asformat(kind) if kind != "bsr" else sparse.csr_array(shape)
        assert sound_array("X", X).shape == shape

    def test_entries_that_are_stored_twice_are_added_in_a_copy(self) -> None:
        X = sparse.csr_array(([1.0, 2.0, 5.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
        checked = checked_rows(X)
        assert checked.nnz == 2
        assert X.nnz == 3
        np.testing.assert_array_equal(checked.toarray(), [[0.0, 3.0], [5.0, 0.0]])
        assert checked_rows(checked) is checked

    def test_entries_behind_the_last_row_are_dropped(self) -> None:
        X = sparse.csr_array(sound_rows())
        expected = Gaussian()(X)
        X.indices = np.append(X.indices, np.int32(10**6))
        X.data = np.append(X.data, np.nan)
        np.testing.assert_array_equal(Gaussian()(X), expected)
        assert len(X.data) == X.nnz + 1  # that of the caller is not touched

    @pytest.mark.parametrize("flag", ["has_canonical_format", "has_sorted_indices"])
    def test_what_scipy_remembers_of_the_order_is_not_believed(self, flag: str) -> None:
        """A flag may be older than the indices; entries stored twice would count as two."""
        X = sparse.csr_array(np.array([[3.0, 0.0, 1.0, 2.0], [0.0, 1.0, 5.0, 1.0]]))
        setattr(X, flag, True)
        X.indices[:] = [2, 0, 2, 3, 1, 3]
        rows = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
        np.add.at(rows, (np.repeat([0, 1], 3), X.indices), X.data)
        sketch = PolynomialSketch(3, n_components=8, random_state=0).fit(rows)
        np.testing.assert_allclose(sketch.transform(X), sketch.transform(rows), rtol=1e-12)

    @pytest.mark.parametrize(
        ("indices", "ascending", "distinct"),
        [([0, 2, 3], True, True), ([0, 0, 3], True, False), ([3, 0, 2], False, False)],
    )
    @pytest.mark.parametrize("remembered", [True, False])
    def test_flags_are_those_of_the_indices(
        self, indices: list[int], ascending: bool, distinct: bool, remembered: bool
    ) -> None:
        X = sparse.csr_array(np.array([[1.0, 2.0, 3.0, 0.0]]))
        X.has_sorted_indices = X.has_canonical_format = remembered
        X.indices[:] = indices
        X = sound_array("X", X)
        assert (X.has_sorted_indices, X.has_canonical_format) == (ascending, distinct)

    def test_strided_and_unaligned_indices(self) -> None:
        X = sparse.csr_array(sound_rows())
        X.indices = np.repeat(X.indices, 2)[::2]
        unaligned = np.empty(X.indptr.nbytes + 1, dtype=np.uint8)[1:].view(X.indptr.dtype)
        unaligned[:] = X.indptr
        X.indptr = unaligned
        np.testing.assert_array_equal(Polynomial()(X), Polynomial()(sparse.csr_array(sound_rows())))


class TestRowStructure:
    @pytest.mark.parametrize("dtype", [np.int32, np.int64])
    @pytest.mark.parametrize("rows", [0, 1, 3, 400])
    def test_compiled_and_reference_agree(self, dtype: Any, rows: int) -> None:
        generator = np.random.default_rng(rows)
        for trial in range(60):
            lengths = generator.integers(0, 5 if rows < 9 else 300, rows)
            indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            indices = generator.integers(0, 1000, indptr[-1]).astype(dtype)
            if trial % 4:  # sorted rows, with and without duplicates
                for start, stop in pairwise(indptr):
                    few = generator.integers(0, 1000, stop - start)
                    wide = generator.choice(1000, stop - start, replace=False)
                    indices[start:stop] = np.sort(few if trial % 4 == 1 else wide)
            if trial % 4 == 3 and len(indices):
                indices[generator.integers(len(indices))] = generator.choice([-1, 1000, 2**31 - 1])
            for bound in (1000, 990):
                found = routines.row_structure(indptr, indices, bound)
                assert found == reference.row_structure(indptr, indices, bound)

    def test_no_column_at_all(self) -> None:
        indptr, indices = np.array([0, 1]), np.zeros(1, dtype=np.int32)
        assert routines.row_structure(indptr, indices, 0).outside == 0


class TestMaskedArrays:
    @each_entry
    def test_masked_entries_are_refused(self, entry: Entry) -> None:
        with pytest.raises(InputError, match=r"2 of its \d+ entries are masked.*filled\(0.0\)"):
            entry(masked_rows())

    @each_entry
    def test_without_masked_entries_they_are_plain_arrays(self, entry: Entry) -> None:
        X = np.ma.masked_array(sound_rows(), mask=np.zeros((ROWS, COLUMNS), dtype=bool))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is said of these few rows is not the matter
            entry(X)

    def test_lists_of_masked_rows(self) -> None:
        with pytest.raises(InputError, match=r"X\[3\] is a masked array, and 1 of its 9"):
            GaussianSketch().fit(list(masked_rows()))

    def test_targets_weights_and_vectors(self) -> None:
        X, masked = sound_rows(), np.ma.masked_less(np.arange(float(ROWS)), 2.0)
        refused = pytest.raises(InputError, match="2 of its 24 entries are masked")
        ridge = SketchedKernelRidge("gaussian", n_components=16)
        with refused:
            ridge.fit(X, masked)
        with refused:
            ridge.fit(X, np.ones(ROWS), sample_weight=masked)
        with refused:
            Gaussian().product(X, masked)
        with refused:
            conjugate_gradients(np.eye(ROWS), masked)
        with refused:
            LowRankInverse(masked[:, None], nugget=1.0)
        with refused:
            FactorOperator(masked[:, None])

    def test_masked_values_of_a_sparse_matrix(self) -> None:
        X = sparse.csr_array(sound_rows())
        X.data = np.ma.masked_less(X.data, 0.0)
        with pytest.raises(InputError, match=r"X.data is a masked array"):
            GaussianSketch().fit(X)
