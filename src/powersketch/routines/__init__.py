"""The numerical routines: compiled, or their NumPy specification if POWERSKETCH_SIMD=numpy."""

import os
from typing import TYPE_CHECKING

from powersketch.routines.fourier_tables import smooth_parts
from powersketch.routines.specs import (
    ChainSpec,
    PairSpec,
    RowStructure,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    TensorSketchSpec,
    hashed_table,
    orthogonal_scale,
)

if TYPE_CHECKING or os.environ.get("POWERSKETCH_SIMD") != "numpy":
    from powersketch.routines.compiled import (
        Chain,
        TensorSketch,
        fourier,
        fwht,
        gaussian_in_place,
        gaussian_values,
        make_chain,
        make_tensor_sketch,
        normal_product,
        product,
        row_moments,
        row_structure,
        scatter,
        sorf,
        squared_norms,
        srht,
        tensor_srht,
    )
else:
    from powersketch.routines.reference import (
        Chain,
        TensorSketch,
        fourier,
        fwht,
        gaussian_in_place,
        gaussian_values,
        make_chain,
        make_tensor_sketch,
        normal_product,
        product,
        row_moments,
        row_structure,
        scatter,
        sorf,
        squared_norms,
        srht,
        tensor_srht,
    )

__all__ = [
    "Chain",
    "ChainSpec",
    "PairSpec",
    "RowStructure",
    "ScatterSpec",
    "SorfSpec",
    "SrhtSpec",
    "TensorSketch",
    "TensorSketchSpec",
    "fourier",
    "fwht",
    "gaussian_in_place",
    "gaussian_values",
    "hashed_table",
    "make_chain",
    "make_tensor_sketch",
    "normal_product",
    "orthogonal_scale",
    "product",
    "row_moments",
    "row_structure",
    "scatter",
    "smooth_parts",
    "sorf",
    "squared_norms",
    "srht",
    "tensor_srht",
]
