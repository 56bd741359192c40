"""Base sketches T by name, the pair sketch S, and projections with normal or complex entries."""

from powersketch.sketches.base_sketches import (
    OSNAP,
    SRHT,
    BaseSketch,
    CountSketch,
    GaussianProjection,
    Rademacher,
    TensorSRHT,
    padded_length,
)
from powersketch.sketches.projections import ComplexProjection, StructuredNormal, complex_projection

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
    "padded_length",
]
