"""Typed contract of the compiled routines; arrays are C-contiguous, nothing is converted."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from powersketch.routines.specs import ChainSpec

_Real = TypeVar("_Real", np.float32, np.float64)
_Index = TypeVar("_Index", np.int32, np.int64)
_Int32 = NDArray[np.int32]
_Int64 = NDArray[np.int64]
_Float64 = NDArray[np.float64]

def instruction_sets() -> list[str]: ...
def instruction_set() -> str: ...
def select_instruction_set(name: str) -> None: ...
def add_peak() -> float: ...
def row_structure(
    indptr: _Int64, indices: NDArray[_Index], bound: int
) -> tuple[int, bool, bool]: ...
def fwht(X: NDArray[_Real], out: NDArray[_Real], threads: int) -> None: ...
def srht(
    X: NDArray[_Real],
    signs: NDArray[_Real],
    indices: _Int32,
    padded: int,
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def srht_sparse(
    values: NDArray[_Real],
    columns: NDArray[_Index],
    indptr: _Int64,
    signs: NDArray[_Real],
    indices: _Int32,
    padded: int,
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def sorf(
    X: NDArray[_Real],
    diagonals: NDArray[_Real],
    indices: _Int32,
    scales: NDArray[_Real],
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def fourier(
    X: NDArray[_Real],
    diagonals: NDArray[_Real],
    indices: _Int32,
    scales: NDArray[_Real],
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def tensor_srht(
    A: NDArray[_Real],
    B: NDArray[_Real],
    signs_first: NDArray[_Real],
    signs_second: NDArray[_Real],
    first: _Int32,
    second: _Int32,
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def scatter(
    X: NDArray[_Real],
    table: _Int32,
    sparsity: int,
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def scatter_sparse(
    values: NDArray[_Real],
    columns: NDArray[_Index],
    indptr: _Int64,
    table: _Int32,
    sparsity: int,
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def scatter_sparse_hashed(
    values: NDArray[_Real],
    columns: NDArray[_Index],
    indptr: _Int64,
    column_count: int,
    key: int,
    sparsity: int,
    scale: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def row_moments(
    X: NDArray[_Real], direction: _Float64, squares: _Float64, dots: _Float64, threads: int
) -> None: ...
def row_moments_sparse(
    values: NDArray[_Real],
    columns: NDArray[_Index],
    indptr: _Int64,
    column_count: int,
    direction: _Float64,
    squares: _Float64,
    dots: _Float64,
    threads: int,
) -> None: ...
def product(
    X: NDArray[_Real], matrix: NDArray[_Real], out: NDArray[_Real], threads: int
) -> None: ...
def normal_product(
    Z: NDArray[_Real], V: NDArray[_Real], offsets: _Float64, weights: _Float64, out: _Float64
) -> None: ...
def product_sparse(
    values: NDArray[_Real],
    columns: NDArray[_Index],
    indptr: _Int64,
    matrix: NDArray[_Real],
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def gaussian_values(
    products: _Float64,
    left: _Float64,
    right: _Float64,
    gamma: float,
    out: NDArray[_Real],
    threads: int,
) -> None: ...
def gaussian_in_place(
    products: NDArray[_Real], left: _Float64, right: _Float64, gamma: float, threads: int
) -> None: ...

class PowerChain32:
    def __init__(self, spec: ChainSpec) -> None: ...
    def apply(
        self,
        X: NDArray[np.float32],
        row_scale: NDArray[np.float32],
        row_shift: NDArray[np.float32],
        block_scales: _Float64,
        out: NDArray[np.float32],
        threads: int,
    ) -> bool: ...

class PowerChain64:
    def __init__(self, spec: ChainSpec) -> None: ...
    def apply(
        self,
        X: NDArray[np.float64],
        row_scale: NDArray[np.float64],
        row_shift: NDArray[np.float64],
        block_scales: _Float64,
        out: NDArray[np.float64],
        threads: int,
    ) -> bool: ...

class FourierTransform32:
    def __init__(
        self,
        *,
        length: int,
        radices: _Int32,
        twiddles: NDArray[np.float32],
        positions: _Int32,
        roots: NDArray[np.float32],
    ) -> None: ...

class TensorSketch32:
    def __init__(
        self,
        *,
        columns: int,
        blocks: _Int32,
        transforms: list[FourierTransform32 | None],
        keys: NDArray[np.uint64],
        shifts: NDArray[np.float32],
        tabulated: bool,
        preserve_norms: bool,
    ) -> None: ...
    def apply(
        self,
        X: NDArray[np.float32],
        row_scale: NDArray[np.float32],
        row_shift: NDArray[np.float32],
        block_scales: _Float64,
        out: NDArray[np.float32],
        threads: int,
    ) -> bool: ...
    def apply_sparse(
        self,
        values: NDArray[np.float32],
        columns: NDArray[_Index],
        indptr: _Int64,
        row_scale: NDArray[np.float32],
        row_shift: NDArray[np.float32],
        block_scales: _Float64,
        out: NDArray[np.float32],
        threads: int,
    ) -> bool: ...

class FourierTransform64:
    def __init__(
        self,
        *,
        length: int,
        radices: _Int32,
        twiddles: NDArray[np.float64],
        positions: _Int32,
        roots: NDArray[np.float64],
    ) -> None: ...

class TensorSketch64:
    def __init__(
        self,
        *,
        columns: int,
        blocks: _Int32,
        transforms: list[FourierTransform64 | None],
        keys: NDArray[np.uint64],
        shifts: NDArray[np.float64],
        tabulated: bool,
        preserve_norms: bool,
    ) -> None: ...
    def apply(
        self,
        X: NDArray[np.float64],
        row_scale: NDArray[np.float64],
        row_shift: NDArray[np.float64],
        block_scales: _Float64,
        out: NDArray[np.float64],
        threads: int,
    ) -> bool: ...
    def apply_sparse(
        self,
        values: NDArray[np.float64],
        columns: NDArray[_Index],
        indptr: _Int64,
        row_scale: NDArray[np.float64],
        row_shift: NDArray[np.float64],
        block_scales: _Float64,
        out: NDArray[np.float64],
        threads: int,
    ) -> bool: ...
