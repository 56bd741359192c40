"""Base sketches T by name, the pair sketch S, and projections with normal or complex entries."""

from powersketch.sketches.complex_projections import ComplexProjection, complex_projection
from powersketch.sketches.dense import GaussianProjection, Rademacher
from powersketch.sketches.operators import BaseSketch
from powersketch.sketches.scatter import OSNAP, CountSketch
from powersketch.sketches.srht import SRHT, TensorSRHT
from powersketch.sketches.structured_normal import StructuredNormal

BASE_SKETCHES: dict[str, type[BaseSketch]] = {
    "srht": SRHT,
    "countsketch": CountSketch,
    "osnap": OSNAP,
    "gaussian": GaussianProjection,
    "rademacher": Rademacher,
}

__all__ = [
    "BASE_SKETCHES",
    "OSNAP",
    "SRHT",
    "BaseSketch",
    "ComplexProjection",
    "CountSketch",
    "StructuredNormal",
    "TensorSRHT",
    "complex_projection",
]
