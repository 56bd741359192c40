"""Fourier transforms of any length: tables, convolutions, and the hash of a TensorSketch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.routines import compiled, reference
from powersketch.routines.fourier_tables import (
    LARGEST_RADIX,
    complex_length,
    fourier_tables,
    roots_of_unity,
)
from powersketch.routines.reference_convolution import from_real_spectrum, halved, real_spectrum

implementations = pytest.mark.parametrize(
    "native", [compiled, reference], ids=["compiled", "reference"]
)
# Every radix, products of them, primes beyond the largest one, and twice such primes.
LENGTHS = [*range(1, 40), 41, 74, 97, 120, 210, 512, 961, 1000, 1021, 1024, 2000, 2006, 2187]


def rows(length: int, dtype: Any = np.float64) -> NDArray[Any]:
    generator = np.random.default_rng(length)
    return generator.normal(size=(2, 5, length)).astype(dtype)


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


class TestTables:
    @pytest.mark.parametrize("length", LENGTHS)
    def test_steps_multiply_to_a_length_that_is_long_enough(self, length: int) -> None:
        tables, count = fourier_tables(length), complex_length(length)
        work = int(np.prod(tables.radices, dtype=np.int64))
        assert max(tables.radices, default=1) <= LARGEST_RADIX
        assert sorted(tables.positions) == list(range(count))
        if len(tables.chirp):
            assert work >= 2 * count - 1
            assert set(tables.radices.tolist()) <= {2, 3, 4, 5}
        else:
            assert work == count

    @pytest.mark.parametrize("length", [37, 74, 1021, 2 * 37 * 41])
    def test_large_primes_take_a_chirp(self, length: int) -> None:
        assert len(fourier_tables(length).chirp) == complex_length(length)

    def test_are_made_once(self) -> None:
        assert fourier_tables(48) is fourier_tables(48)


class TestSpectra:
    @pytest.mark.parametrize("length", LENGTHS)
    def test_are_those_of_numpy(self, length: int) -> None:
        values, _ = rows(length)
        spectrum = real_spectrum(halved(values, length), fourier_tables(length))
        numbers = spectrum.re + 1j * spectrum.im
        if length % 2 == 0:  # the first and the last frequency share a place
            numbers = np.column_stack([spectrum.re[:, 0], numbers[:, 1:], spectrum.im[:, 0]])
            numbers = numbers[:, [*range(length // 2), -1]]
        np.testing.assert_allclose(numbers, np.fft.rfft(values), atol=3e-15 * length)

    @pytest.mark.parametrize("length", LENGTHS)
    def test_go_back_to_their_rows(self, length: int) -> None:
        values, _ = rows(length)
        tables = fourier_tables(length)
        back = from_real_spectrum(real_spectrum(halved(values, length), tables), tables)
        np.testing.assert_allclose(back / length, values, atol=1e-14)


class TestConvolution:
    @implementations
    @pytest.mark.parametrize("length", LENGTHS)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_the_sum_over_all_shifts(self, native: Any, length: int, dtype: Any) -> None:
        A, B = rows(length, dtype)
        shifts = (np.arange(length)[:, None] - np.arange(length)) % length
        expected = np.einsum("rj,rkj->rk", A.astype(np.float64), B.astype(np.float64)[:, shifts])
        result = native.convolve(A, B)
        assert result.dtype == dtype
        tolerance = 16 * np.finfo(dtype).eps * np.log2(length + 1) * np.sqrt(length)
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)

    @pytest.mark.parametrize("length", [60000, 65536, 65538, 70000])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_of_long_rows(self, length: int, dtype: Any) -> None:
        """Beyond 2^16 numbers, rows are transformed one by one."""
        A, B = np.random.default_rng(0).normal(size=(2, 17, length)).astype(dtype)
        result = compiled.convolve(A, B, threads=2)
        spectra = (np.fft.rfft(rows.astype(np.float64)) for rows in (A, B))
        expected = np.fft.irfft(np.prod(list(spectra), axis=0), n=length)
        tolerance = 200 * np.finfo(dtype).eps * np.sqrt(length)
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)
        for row in (0, 16):
            alone = compiled.convolve(A[row : row + 1], B[row : row + 1])
            np.testing.assert_array_equal(alone[0], result[row])

    @implementations
    @given(length=st.integers(1, 300), shift=st.integers(0, 299))
    @example(length=37, shift=36)
    def test_with_a_unit_vector_is_a_rotation(self, native: Any, length: int, shift: int) -> None:
        A, B = rows(length)
        B[:] = np.eye(length)[shift % length]
        expected = np.roll(A, shift % length, axis=1)
        np.testing.assert_allclose(native.convolve(A, B), expected, atol=2e-14)
