"""The specification of TensorSketch in plain NumPy; results agree with the compiled one's bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, divide_or_zero
from powersketch.routines.fixed_order import dense_rows, scatter, sum_by_eights
from powersketch.routines.fourier_steps import Complex
from powersketch.routines.fourier_tables import fourier_tables
from powersketch.routines.hashing import hashed_table
from powersketch.routines.reference_convolution import (
    from_real_spectrum,
    halved,
    real_spectrum,
    spectrum_product,
)
from powersketch.routines.specs import ScatterSpec, TensorSketchSpec

_LARGEST_SHIFT = 60  # of the exponent in one step
_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite


def _largest(spectrum: Complex) -> Real:
    """Return the largest absolute value among the real and imaginary parts of every row."""
    both = np.maximum(np.abs(spectrum.re).max(axis=1), np.abs(spectrum.im).max(axis=1))
    largest: Real = both
    return largest


def _exponents(largest: Real) -> NDArray[np.int64]:
    """Return the e with which largest · 2^−e is in [½, 1), if that is not too far off."""
    _, exponents = np.frexp(np.where(np.isfinite(largest), largest, 0))
    return np.clip(exponents, -_LARGEST_SHIFT, _LARGEST_SHIFT).astype(np.int64)


class ReferenceTensorSketch:
    """z = IFFT(Π_t FFT(C_t u)) for every block, one factor after the other on all rows."""

    def __init__(self, spec: TensorSketchSpec, dtype: np.dtype[Any]) -> None:
        self._spec = spec
        self._dtype = dtype

    def apply(
        self,
        X: Rows,
        row_scale: Real,
        row_shift: Real,
        block_scales: NDArray[np.float64],
        out: Real,
        threads: int,
    ) -> bool:
        """Write the blocks of every row into `out`; False if a value overflows its dtype."""
        del threads
        dense = dense_rows(X)
        ends = np.cumsum(self._spec.blocks[:, 0])
        representable = True
        for b, (degree, size, offset) in enumerate(self._spec.blocks.tolist()):
            keys = self._spec.keys[ends[b] - degree : ends[b]].tolist()
            values, exponents = self._block(dense, keys, size, row_scale, row_shift)
            length = size if degree > 1 else 1
            factor, fits = self._factor(values, exponents, block_scales[:, b], length)
            out[:, offset : offset + size] = values * factor[:, None]
            representable = representable and fits
        return representable

    def _block(
        self, X: Real, keys: list[int], size: int, row_scale: Real, row_shift: Real
    ) -> tuple[Real, NDArray[np.int64]]:
        """Return one block of all rows, up to its size and 2 to the powers also returned."""
        dtype, tables = self._dtype, fourier_tables(size)
        exponents = np.zeros(len(X), dtype=np.int64)
        if len(keys) == 1:
            return self._leaf(X, keys[0], size, row_scale, row_shift), exponents
        product, scale = None, np.ones(len(X), dtype=dtype)
        for key in keys:
            leaf = self._leaf(X, key, size, row_scale, row_shift) * halved(scale, size)[:, None]
            factor = real_spectrum(leaf, tables)
            product = factor if product is None else spectrum_product(product, factor, size)
            # The next factor takes the product's scale along, or degrees of 1000 would overflow.
            shift = _exponents(_largest(product))
            exponents += shift
            scale = np.ldexp(dtype.type(1), -shift.astype(np.int32)).astype(dtype)
        assert product is not None
        scaled = Complex(product.re * scale[:, None], product.im * scale[:, None])
        return from_real_spectrum(scaled, tables), exponents

    def _leaf(self, X: Real, key: int, size: int, row_scale: Real, row_shift: Real) -> Real:
        """Return C(row_scale · x + row_shift · direction)."""
        leaf = scatter(X, _count_sketch(key, X.shape[1], size)) * row_scale[:, None]
        direction = self._spec.direction
        if len(direction):
            moved = scatter(direction[None, :], _count_sketch(key, len(direction), size))
            leaf = leaf + row_shift[:, None] * moved.astype(self._dtype)
        return leaf

    def _factor(
        self,
        values: Real,
        exponents: NDArray[np.int64],
        scales: NDArray[np.float64],
        length: int,
    ) -> tuple[Real, bool]:
        norms = np.sqrt(sum_by_eights(values * values).astype(np.float64))
        if self._spec.preserve_norms:
            factor = divide_or_zero(scales, norms)
        else:
            exponents = np.clip(exponents, -_EXPONENT_LIMIT, _EXPONENT_LIMIT)
            with np.errstate(over="ignore", under="ignore"):
                factor = np.ldexp(scales / length, exponents.astype(np.int32))
            factor = np.where(norms > 0, factor, 0.0)
        sizes = np.abs(factor) * np.maximum(norms, 1.0)
        fits = bool(np.all(sizes <= np.finfo(self._dtype).max))
        with np.errstate(over="ignore"):
            return factor.astype(self._dtype), fits


def _count_sketch(key: int, columns: int, size: int) -> ScatterSpec:
    return ScatterSpec(hashed_table(key, columns, size, 1), size, 1.0)


def make_tensor_sketch(spec: TensorSketchSpec, dtype: np.dtype[Any]) -> ReferenceTensorSketch:
    """Return the reference for `dtype`."""
    return ReferenceTensorSketch(spec, dtype)
