"""The numerical kernels: compiled, or their NumPy specification if POWERSKETCH_SIMD=numpy."""

import os
from typing import TYPE_CHECKING

from powersketch.native.specs import (
    ChainSpec,
    PairSpec,
    Real,
    Rows,
    ScatterSpec,
    SrhtSpec,
    is_sparse,
    padded_length,
)

if TYPE_CHECKING or os.environ.get("POWERSKETCH_SIMD") != "numpy":
    from powersketch.native.compiled import (
        Chain,
        fwht,
        make_chain,
        product,
        row_moments,
        scatter,
        srht,
        tensor_srht,
    )
else:
    from powersketch.native.reference import (
        ReferenceChain as Chain,
    )
    from powersketch.native.reference import (
        fwht,
        make_chain,
        product,
        row_moments,
        scatter,
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
    "SrhtSpec",
    "fwht",
    "is_sparse",
    "make_chain",
    "padded_length",
    "product",
    "row_moments",
    "scatter",
    "srht",
    "tensor_srht",
]
