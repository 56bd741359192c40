"""The numerical kernels: compiled, or their NumPy specification if POWERSKETCH_SIMD=numpy."""

import os
from typing import TYPE_CHECKING

import numpy as np

from powersketch.arrays import Rows, Vector
from powersketch.routines.hashing import hashed_table
from powersketch.routines.medians import median_row
from powersketch.routines.specs import (
    LARGEST_LENGTH,
    ChainSpec,
    PairSpec,
    RowStructure,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    TensorSketchSpec,
    orthogonal_scale,
)

if TYPE_CHECKING or os.environ.get("POWERSKETCH_SIMD") != "numpy":
    from powersketch.routines.compiled import (
        Chain,
        TensorSketch,
        convolve,
        fourier,
        fwht,
        gaussian_values,
        make_chain,
        make_tensor_sketch,
        product,
        row_moments,
        row_structure,
        scatter,
        sorf,
        srht,
        tensor_srht,
    )
else:
    from powersketch.routines.reference import (
        ReferenceChain as Chain,
    )
    from powersketch.routines.reference import (
        convolve,
        fourier,
        fwht,
        gaussian_values,
        make_chain,
        make_tensor_sketch,
        product,
        row_moments,
        row_structure,
        scatter,
        sorf,
        srht,
        tensor_srht,
    )
    from powersketch.routines.reference_tensor_sketch import (
        ReferenceTensorSketch as TensorSketch,
    )

__all__ = [
    "LARGEST_LENGTH",
    "Chain",
    "ChainSpec",
    "PairSpec",
    "RowStructure",
    "ScatterSpec",
    "SorfSpec",
    "SrhtSpec",
    "TensorSketch",
    "TensorSketchSpec",
    "convolve",
    "fourier",
    "fwht",
    "gaussian_values",
    "hashed_table",
    "make_chain",
    "make_tensor_sketch",
    "median_row",
    "orthogonal_scale",
    "product",
    "row_moments",
    "row_structure",
    "scatter",
    "sorf",
    "squared_norms",
    "srht",
    "tensor_srht",
]


def squared_norms(X: Rows, *, threads: int = 1) -> Vector:
    """Return ‖x‖² of every row, summed in double precision."""
    squares, _ = row_moments(X, np.zeros(X.shape[1]), threads=threads)
    return squares
