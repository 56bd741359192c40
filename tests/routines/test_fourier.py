"""Fourier transforms of lengths without prime factors above 5: tables, spectra, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.exceptions import InputError
from powersketch.routines import compiled, hashed_table, reference, smooth_parts
from powersketch.routines.fourier_tables import complex_length, fourier_tables, roots_of_unity
from powersketch.routines.reference.tensor_sketch import from_real_spectrum, halved, real_spectrum
from powersketch.routines.specs import ScatterSpec, TensorSketchSpec
from tests.routines.routine_calls import assert_same_bits

# Every radix and products of them.
LENGTHS = [
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    9,
    10,
    12,
    15,
    16,
    18,
    20,
    25,
    27,
    30,
    32,
    120,
    225,
    512,
    1000,
    2187,
]
KEYS = np.array([3, 2**63 + 7], dtype=np.uint64)


def rows(length: int) -> NDArray[np.float64]:
    return np.random.default_rng(length).normal(size=(5, length))


class TestRoots:
    @pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8, 12, 1000, 1021])
    def test_are_on_the_unit_circle(self, order: int) -> None:
        exponents = np.arange(3 * order)
        roots = roots_of_unity(exponents, order)
        expected = np.exp(-2j * np.pi * (exponents % order) / order)
        np.testing.assert_allclose(roots[:, 0] + 1j * roots[:, 1], expected, atol=2e-15)
        np.testing.assert_array_equal(roots[:order], roots[2 * order :])

    @pytest.mark.parametrize("order", [4, 12, 20, 1004])
    def test_symmetries_are_exact(self, order: int) -> None:
        """But for an eighth of a turn, whose sine and cosine are rounded differently."""
        cosine, minus_sine = roots_of_unity(np.arange(order), order).T
        quarter = order // 4
        np.testing.assert_array_equal(cosine[1:], cosine[:0:-1])
        np.testing.assert_array_equal(minus_sine[1:], -minus_sine[:0:-1])
        np.testing.assert_array_equal(cosine[: 3 * quarter], -minus_sine[quarter:])
        assert cosine[[0, quarter, 2 * quarter]].tolist() == [1.0, 0.0, -1.0]

    def test_signs_of_zeros_are_positive_in_the_first_root(self) -> None:
        assert not np.signbit(roots_of_unity(np.zeros(1, dtype=np.int64), 7)).any()


class TestLengths:
    @given(size=st.integers(1, 2**30))
    def test_parts_have_tables_and_add_up(self, size: int) -> None:
        parts = smooth_parts(size)
        assert sum(parts) == size
        assert parts == sorted(parts, reverse=True)
        assert len(parts) <= 6
        for part in parts:
            while part % 2 == 0:
                part //= 2
            while part % 3 == 0:
                part //= 3
            assert 5 ** round(np.log(part) / np.log(5)) == part

    @pytest.mark.parametrize("length", LENGTHS)
    def test_a_length_with_tables_is_one_part(self, length: int) -> None:
        assert smooth_parts(length) == [length]

    @pytest.mark.parametrize("length", LENGTHS)
    def test_steps_multiply_to_the_length(self, length: int) -> None:
        tables, count = fourier_tables(length), complex_length(length)
        assert set(tables.radices.tolist()) <= {2, 3, 4, 5}
        assert int(np.prod(tables.radices, dtype=np.int64)) == count
        assert sorted(tables.positions) == list(range(count))

    @pytest.mark.parametrize("length", [7, 14, 97])
    def test_other_lengths_are_refused(self, length: int) -> None:
        with pytest.raises(InputError, match=f"length={length} .* allowed are products of 2, 3"):
            fourier_tables(length)

    def test_tables_are_made_once(self) -> None:
        assert fourier_tables(48) is fourier_tables(48)


class TestSpectra:
    @pytest.mark.parametrize("length", LENGTHS)
    def test_are_those_of_numpy(self, length: int) -> None:
        values = rows(length)
        spectrum = real_spectrum(halved(values, length), fourier_tables(length))
        numbers = spectrum.re + 1j * spectrum.im
        if length % 2 == 0:  # the first and the last frequency share a place
            numbers = np.column_stack([spectrum.re[:, 0], numbers[:, 1:], spectrum.im[:, 0]])
            numbers = numbers[:, [*range(length // 2), -1]]
        np.testing.assert_allclose(numbers, np.fft.rfft(values), atol=3e-15 * length)

    @pytest.mark.parametrize("length", LENGTHS)
    def test_go_back_to_their_rows(self, length: int) -> None:
        values = rows(length)
        tables = fourier_tables(length)
        back = from_real_spectrum(real_spectrum(halved(values, length), tables), tables)
        np.testing.assert_allclose(back / length, values, atol=1e-14)


def convolved(native: Any, X: NDArray[Any], length: int) -> NDArray[Any]:
    """The TensorSketch of degree 2, a circular convolution of two CountSketches."""
    spec = TensorSketchSpec(
        columns=X.shape[1],
        blocks=np.array([[2, length, 0]], dtype=np.int32),
        keys=KEYS,
        direction=np.empty(0),
        preserve_norms=False,
        sparse=False,
    )
    out, ones = np.empty((len(X), length), dtype=X.dtype), np.ones(len(X), dtype=X.dtype)
    sketch = native.make_tensor_sketch(spec, X.dtype)
    assert sketch.apply(X, ones, ones[:0], np.ones((len(X), 1)), out, 2)
    return out


def factors(X: NDArray[Any], length: int) -> list[NDArray[np.float64]]:
    tables = (hashed_table(key, X.shape[1], length, 1) for key in KEYS.tolist())
    return [
        compiled.scatter(X.astype(np.float64), ScatterSpec(table, length, 1.0)) for table in tables
    ]


class TestConvolution:
    @pytest.mark.parametrize("length", LENGTHS)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_the_sum_over_all_shifts(self, length: int, dtype: Any) -> None:
        X = np.random.default_rng(length).normal(size=(19, 40)).astype(dtype)
        first, second = factors(X, length)
        shifts = (np.arange(length)[:, None] - np.arange(length)) % length
        expected = np.stack([a[shifts] @ b for a, b in zip(first, second, strict=True)])
        result = convolved(compiled, X, length)
        tolerance = 64 * np.finfo(dtype).eps * np.log2(length + 1)
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * 40)
        assert_same_bits(result, convolved(reference, X, length))

    @pytest.mark.parametrize("length", [131072, 131220])
    def test_of_long_rows(self, length: int) -> None:
        """Beyond 2^16 complex numbers, rows are transformed one by one."""
        X = np.random.default_rng(0).normal(size=(17, 300)).astype(np.float32)
        result = convolved(compiled, X, length)
        spectra = [np.fft.rfft(values[[0, 16]]) for values in factors(X, length)]
        expected = np.fft.irfft(spectra[0] * spectra[1], n=length)
        np.testing.assert_allclose(result[[0, 16]], expected, rtol=0, atol=1e-4)
        assert_same_bits(convolved(compiled, X[16:], length), result[16:])


def test_targets_of_sparse_rows_are_those_of_the_table() -> None:
    """The compiled hash is the specification's: unit vectors show where coordinates go."""
    X = sp.eye_array(200, format="csr")
    table = hashed_table(KEYS[1].item(), 200, 64, 1)
    by_hash = compiled.scatter(X, ScatterSpec(table, 64, 1.0, KEYS[1].item()))
    assert_same_bits(by_hash, compiled.scatter(X.toarray(), ScatterSpec(table, 64, 1.0)))
