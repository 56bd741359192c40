"""Base sketches T and pair sketches S, each kind behind a registry by name."""

from powersketch.sketches.complex_projections import ComplexProjection, complex_projection
from powersketch.sketches.gaussian import GaussianProjection
from powersketch.sketches.operators import BaseSketch, PairSketch
from powersketch.sketches.rademacher import Rademacher
from powersketch.sketches.scatter import OSNAP, CountSketch
from powersketch.sketches.srht import SRHT
from powersketch.sketches.structured_normal import StructuredNormal
from powersketch.sketches.tensor_sketch import TensorSketch
from powersketch.sketches.tensor_srht import TensorSRHT

BASE_SKETCHES: dict[str, type[BaseSketch]] = {
    "srht": SRHT,
    "countsketch": CountSketch,
    "osnap": OSNAP,
    "gaussian": GaussianProjection,
    "rademacher": Rademacher,
}
PAIR_SKETCHES: dict[str, type[PairSketch]] = {
    "tensor_srht": TensorSRHT,
    "tensor_sketch": TensorSketch,
}

__all__ = [
    "BASE_SKETCHES",
    "OSNAP",
    "PAIR_SKETCHES",
    "SRHT",
    "BaseSketch",
    "ComplexProjection",
    "CountSketch",
    "GaussianProjection",
    "PairSketch",
    "Rademacher",
    "StructuredNormal",
    "TensorSRHT",
    "TensorSketch",
    "complex_projection",
]
