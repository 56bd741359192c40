"""Powers x^⊗p of vectors: sketched by one of several methods, or exactly by monomials."""

from powersketch.powers.complex_to_real import ComplexToReal
from powersketch.powers.methods import (
    FormatCache,
    PowerMethod,
    PowerOptions,
    Powers,
    ShiftedRows,
    Slice,
    extreme_power,
    to_one,
)
from powersketch.powers.monomials import (
    Monomials,
    SampledMonomials,
    monomial_count,
    monomials_fit,
)
from powersketch.powers.repeated_squaring import PowerSketch, algorithm_1
from powersketch.powers.scaled_numbers import Scaled, ascending_powers
from powersketch.powers.tensor_sketch import TensorSketchPowers
from powersketch.powers.tree import TreeSketch

POWER_METHODS: dict[str, PowerMethod] = {
    "power": PowerSketch,
    "ctr": ComplexToReal,
    "tree": TreeSketch,
    "tensorsketch": TensorSketchPowers,
}

__all__ = [
    "POWER_METHODS",
    "FormatCache",
    "Monomials",
    "PowerOptions",
    "PowerSketch",
    "Powers",
    "SampledMonomials",
    "Scaled",
    "ShiftedRows",
    "Slice",
    "algorithm_1",
    "ascending_powers",
    "extreme_power",
    "monomial_count",
    "monomials_fit",
    "to_one",
]
