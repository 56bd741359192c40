"""Powers x^⊗p of vectors: sketched by repeated squaring, or exactly by monomials."""

from powersketch.powers.adaptive_draws import adaptive_tuples, affordable_draw
from powersketch.powers.complex_to_real import ComplexToReal
from powersketch.powers.merged_tuples import AdaptiveTuples
from powersketch.powers.methods import (
    FormatCache,
    PowerMethod,
    PowerOptions,
    Powers,
    ShiftedRows,
    Slice,
    extreme_power,
    times_rows,
    to_one,
)
from powersketch.powers.monomials import Monomials, monomial_count, monomials_fit
from powersketch.powers.repeated_squaring import PowerSketch, algorithm_1
from powersketch.powers.sampled_monomials import SampledMonomials
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
    "AdaptiveTuples",
    "ComplexToReal",
    "FormatCache",
    "Monomials",
    "PowerMethod",
    "PowerOptions",
    "PowerSketch",
    "Powers",
    "SampledMonomials",
    "Scaled",
    "ShiftedRows",
    "Slice",
    "TensorSketchPowers",
    "TreeSketch",
    "adaptive_tuples",
    "affordable_draw",
    "algorithm_1",
    "ascending_powers",
    "extreme_power",
    "monomial_count",
    "monomials_fit",
    "times_rows",
    "to_one",
]
