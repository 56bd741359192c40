"""The numerical kernels: compiled, or their NumPy specification if POWERSKETCH_SIMD=numpy."""

import os
from typing import TYPE_CHECKING

from powersketch.native.medians import median_row
from powersketch.native.ratios import ratio_or_zero
from powersketch.native.specs import (
    LARGEST_LENGTH,
    ChainSpec,
    PairSpec,
    Real,
    Rows,
    RowStructure,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    TensorSketchSpec,
    is_sparse,
    orthogonal_scale,
    padded_length,
)

if TYPE_CHECKING or os.environ.get("POWERSKETCH_SIMD") != "numpy":
    from powersketch.native.compiled import (
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
    from powersketch.native.reference import (
        ReferenceChain as Chain,
    )
    from powersketch.native.reference import (
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
    from powersketch.native.reference_tensor_sketch import (
        ReferenceTensorSketch as TensorSketch,
    )

__all__ = [
    "LARGEST_LENGTH",
    "Chain",
    "ChainSpec",
    "PairSpec",
    "Real",
    "RowStructure",
    "Rows",
    "ScatterSpec",
    "SorfSpec",
    "SrhtSpec",
    "TensorSketch",
    "TensorSketchSpec",
    "convolve",
    "fourier",
    "fwht",
    "gaussian_values",
    "is_sparse",
    "make_chain",
    "make_tensor_sketch",
    "median_row",
    "orthogonal_scale",
    "padded_length",
    "product",
    "ratio_or_zero",
    "row_moments",
    "row_structure",
    "scatter",
    "sorf",
    "srht",
    "tensor_srht",
]
