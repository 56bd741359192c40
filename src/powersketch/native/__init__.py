"""The numerical kernels: compiled, or their NumPy specification if POWERSKETCH_SIMD=numpy."""

import os
from typing import TYPE_CHECKING

from powersketch.native.specs import (
    ChainSpec,
    PairSpec,
    Real,
    Rows,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    is_sparse,
    orthogonal_scale,
    padded_length,
)

if TYPE_CHECKING or os.environ.get("POWERSKETCH_SIMD") != "numpy":
    from powersketch.native.compiled import (
        Chain,
        fourier,
        fwht,
        make_chain,
        product,
        row_moments,
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
        fourier,
        fwht,
        make_chain,
        product,
        row_moments,
        scatter,
        sorf,
        srht,
        tensor_srht,
    )

__all__ = [
    "Chain",
    "ChainSpec",
    "PairSpec",
    "Real",
    "Rows",
    "ScatterSpec",
    "SorfSpec",
    "SrhtSpec",
    "fourier",
    "fwht",
    "is_sparse",
    "make_chain",
    "orthogonal_scale",
    "padded_length",
    "product",
    "row_moments",
    "scatter",
    "sorf",
    "srht",
    "tensor_srht",
]
