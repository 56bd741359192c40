"""The specification: every routine in plain NumPy, same arguments and draws as the compiled one."""

from powersketch.routines.reference.normal_products import normal_product
from powersketch.routines.reference.tensor_sketch import TensorSketch, make_tensor_sketch
from powersketch.routines.reference.transforms import (
    Chain,
    fourier,
    fwht,
    gaussian_in_place,
    gaussian_values,
    make_chain,
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
    "TensorSketch",
    "fourier",
    "fwht",
    "gaussian_in_place",
    "gaussian_values",
    "make_chain",
    "make_tensor_sketch",
    "normal_product",
    "product",
    "row_moments",
    "row_structure",
    "scatter",
    "sorf",
    "squared_norms",
    "srht",
    "tensor_srht",
]
