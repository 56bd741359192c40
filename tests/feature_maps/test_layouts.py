"""How the rows lie in memory changes nothing: the same numbers give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch import PolynomialSketch
from tests.feature_maps.cases import (
    CASES,
    FLOATS,
    Case,
    assert_same_bits,
    each_case,
    each_case_with,
    each_float,
    each_kind,
    unaligned,
    uncentred,
)

Array = NDArray[Any]


def every_other_row(X: Array) -> Array:
    return np.repeat(X, 2, axis=0)[::2]


def every_other_column(X: Array) -> Array:
    return np.repeat(X, 2, axis=1)[:, ::2]


def reversed_rows(X: Array) -> Array:
    return X[::-1].copy()[::-1]


def reversed_columns(X: Array) -> Array:
    return X[:, ::-1].copy()[:, ::-1]


def part_of_a_larger_array(X: Array) -> Array:
    larger = np.full((X.shape[0] + 3, X.shape[1] + 5), np.nan, dtype=X.dtype)
    larger[2:-1, 1:-4] = X
    return larger[2:-1, 1:-4]


def read_only(X: Array) -> Array:
    frozen = X.copy()
    frozen.flags.writeable = False
    return frozen


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    layout.__name__: layout
    for layout in (
        np.asfortranarray,
        every_other_row,
        every_other_column,
        reversed_rows,
        reversed_columns,
        part_of_a_larger_array,
        read_only,
        unaligned,
    )
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def fitted_and_transformed(case: Case, plain: Array, other: Any) -> tuple[Array, Array]:
    """Transform `other` by a sketch fitted to the plain rows, and by one fitted to itself."""
    return case.sketch().fit(plain).transform(other), case.sketch().fit_transform(other)


def shared_and_refitted(case: Case, other: Any) -> tuple[Array, Array]:
    """Do so with the sketch that is fitted to the case's own rows."""
    return case.fitted(dtype=other.dtype).transform(other), case.sketch().fit_transform(other)


class TestDense:
    @each_kind
    @each_layout
    def test_same_bits_by_every_kind_of_map(
        self, case: Case, layout: Callable[[Array], Array]
    ) -> None:
        self.test_same_bits(case, np.float32, layout)

    @each_case_with(dtype=FLOATS, layout=list(LAYOUTS.values()))
    def test_same_bits(self, case: Case, dtype: Any, layout: Callable[[Array], Array]) -> None:
        Z, other = case.features(dtype=dtype), layout(case.rows(dtype=dtype))
        if layout is not read_only:
            assert not (other.flags.c_contiguous and other.flags.aligned)
        for features in shared_and_refitted(case, other):
            assert_same_bits(features, Z)

    @each_kind
    @each_float
    def test_memory_mapped_files(self, case: Case, dtype: Any, tmp_path: Path) -> None:
        X = case.rows(dtype=dtype)
        X.tofile(tmp_path / "rows")
        mapped = np.memmap(tmp_path / "rows", dtype=dtype, mode="r", shape=X.shape)
        for features in shared_and_refitted(case, mapped):
            assert_same_bits(np.asarray(features), case.features(dtype=dtype))

    @each_kind
    def test_input_is_not_changed(self, case: Case) -> None:
        X = case.rows()
        before = X.copy()
        case.sketch().fit_transform(X)
        assert_same_bits(X, before)

    @given(
        columns=st.integers(1, 24),
        dtype=st.sampled_from(FLOATS),
        steps=st.tuples(st.sampled_from([-3, -2, -1, 1, 2]), st.sampled_from([-2, -1, 1, 3])),
        order=st.sampled_from("CF"),
        name=st.sampled_from(list(CASES)),
        seed=st.integers(0, 2**16),
    )
    @settings(max_examples=80)
    def test_any_strides(
        self, columns: int, dtype: Any, steps: tuple[int, int], order: str, name: str, seed: int
    ) -> None:
        rows = CASES[name].rows(60, dtype, seed, 3 * columns)
        larger = np.asarray(rows, order=order)
        strided = larger[:: steps[0], :: steps[1]]
        plain = np.ascontiguousarray(strided)
        for features in fitted_and_transformed(CASES[name], plain, strided):
            assert_same_bits(features, CASES[name].sketch().fit_transform(plain))


class TestOtherNumbers:
    @pytest.mark.parametrize(
        "dtype", [np.int8, np.uint8, np.int32, np.int64, np.bool_, np.float16, ">f8", object]
    )
    @pytest.mark.parametrize("name", ["exact", "direct", "mean", "literal"])
    def test_become_float64(self, dtype: Any, name: str) -> None:
        case = CASES[name]
        X = np.random.default_rng(0).integers(0, 2, (30, case.columns)).astype(dtype)
        Z = case.sketch().fit_transform(X)
        assert Z.dtype == np.float64
        assert_same_bits(Z, case.sketch().fit_transform(X.astype(np.float64)))

    @each_kind
    def test_lists(self, case: Case) -> None:
        X = case.rows(5)
        assert_same_bits(case.sketch().fit_transform(X.tolist()), case.features(5))

    @each_kind
    @each_float
    def test_data_frames(self, case: Case, dtype: Any) -> None:
        X = case.rows(dtype=dtype)
        Z = case.sketch().fit_transform(pd.DataFrame(X).add_prefix("column "))
        assert_same_bits(Z, case.features(dtype=dtype))

    def test_data_frames_of_mixed_types(self) -> None:
        frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 0.25, 1.0], "c": [True, False, True]})
        Z = PolynomialSketch(random_state=0).fit_transform(frame)
        X = frame.to_numpy(dtype=np.float64)
        assert_same_bits(Z, PolynomialSketch(random_state=0).fit_transform(X))

    @each_case
    def test_float32_stays_close_to_float64(self, case: Case) -> None:
        X, sketch = case.rows(dtype=np.float32), case.fitted(dtype=np.float32)
        single, double = sketch.transform(X), sketch.transform(X.astype(np.float64))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, rtol=0, atol=2e-5 * np.abs(double).max())


def wide_indices(X: Array) -> sp.csr_array:
    A = sp.csr_array(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def unsorted_indices(X: Array) -> sp.csr_array:
    A = sp.csr_array(X)
    backwards = [np.arange(a, b)[::-1] for a, b in zip(A.indptr[:-1], A.indptr[1:], strict=True)]
    order = np.concatenate(backwards)
    return sp.csr_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)


def duplicate_entries(X: Array) -> sp.csr_array:
    """Every entry is stored as two halves."""
    A = sp.csr_array(X)
    return sp.csr_array(
        (np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape
    )


def stored_zeros(X: Array) -> sp.csr_array:
    rows, columns = X.shape
    indices, indptr = np.tile(np.arange(columns), rows), np.arange(rows + 1) * columns
    return sp.csr_array((X.reshape(-1), indices, indptr), shape=X.shape)


def read_only_csr(X: Array) -> sp.csr_array:
    A = sp.csr_array(X)
    for part in (A.data, A.indices, A.indptr):
        part.flags.writeable = False
    return A


SPARSE: dict[str, Callable[[Array], Any]] = {
    make.__name__: make
    for make in (
        sp.csr_matrix,
        sp.csc_matrix,
        sp.coo_matrix,
        sp.lil_matrix,
        sp.csr_array,
        sp.csc_array,
        sp.coo_array,
        sp.bsr_array,
        sp.dok_array,
        wide_indices,
        unsorted_indices,
        duplicate_entries,
        stored_zeros,
        read_only_csr,
    )
}
each_sparse = pytest.mark.parametrize("make", SPARSE.values(), ids=SPARSE.keys())


class TestSparse:
    @each_kind
    @each_sparse
    def test_equals_dense_by_every_kind_of_map(
        self, case: Case, make: Callable[[Array], Any]
    ) -> None:
        self.test_equals_dense(case, np.float32, make)

    @each_case_with(dtype=FLOATS, make=list(SPARSE.values()))
    def test_equals_dense(self, case: Case, dtype: Any, make: Callable[[Array], Any]) -> None:
        """To the bit, except where an SRHT sums the few entries of a sparse row directly."""
        X, Z = case.rows(dtype=dtype), case.features(dtype=dtype)
        base = case.parameters.get("base_sketch", "srht")  # what "auto" is if fit sees dense rows
        fitted_dense = case.fitted(dtype=dtype).transform(make(X))
        fitted_sparse = case.sketch_by(base).fit_transform(make(X))
        for features in (fitted_dense, fitted_sparse):
            assert isinstance(features, np.ndarray)
            assert features.dtype == dtype
            if case.same_bits_sparse:
                np.testing.assert_array_equal(features, Z)
            else:
                tolerance = 20 * np.finfo(dtype).eps * np.abs(Z).max()
                np.testing.assert_allclose(features, Z, rtol=0, atol=tolerance)

    @each_kind
    def test_every_format_gives_the_same_bits(self, case: Case) -> None:
        X = case.rows()
        expected = case.sketch().fit_transform(sp.csr_array(X))
        for make in SPARSE.values():
            # With more entries the SRHT may sum in another order.
            if make is not stored_zeros or case.same_bits_sparse:
                np.testing.assert_array_equal(case.sketch().fit_transform(make(X)), expected)

    @each_kind
    @pytest.mark.parametrize("make", [unsorted_indices, duplicate_entries, wide_indices])
    def test_input_is_not_changed(self, case: Case, make: Callable[[Array], Any]) -> None:
        A = make(case.rows())
        parts = [part.copy() for part in (A.data, A.indices, A.indptr)]
        case.sketch().fit_transform(A)
        for before, after in zip(parts, (A.data, A.indices, A.indptr), strict=True):
            assert_same_bits(after, before)

    def test_default_base_sketch_follows_the_rows(self) -> None:
        X = uncentred(50, 300)
        for rows, base in ((X, "srht"), (sp.csr_array(X), "osnap")):
            chosen = PolynomialSketch(3, n_components=64, random_state=0).fit_transform(rows)
            asked = PolynomialSketch(3, n_components=64, random_state=0, base_sketch=base)
            assert_same_bits(chosen, asked.fit_transform(rows))

    @given(
        rows=st.integers(1, 9),
        columns=st.integers(1, 70),
        density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
        name=st.sampled_from([name for name, case in CASES.items() if case.same_bits_sparse]),
        seed=st.integers(0, 2**16),
    )
    @settings(max_examples=80)
    def test_any_shape_and_density(
        self, rows: int, columns: int, density: float, name: str, seed: int
    ) -> None:
        X = CASES[name].rows(rows, np.float64, seed, columns)
        X[np.random.default_rng(seed + 1).random(X.shape) >= density] = 0.0
        sketch = CASES[name].sketch_by("countsketch").fit(X)
        np.testing.assert_array_equal(sketch.transform(sp.csr_array(X)), sketch.transform(X))
