"""Powers x^⊗p of vectors: sketched by repeated squaring, or exactly by monomials."""

from powersketch.powers.adaptive_draws import adaptive_tuples, affordable_draw
from powersketch.powers.complex_to_real import ComplexToReal
from powersketch.powers.merged_tuples import AdaptiveTuples
from powersketch.powers.methods import FormatCache, PowerMethod, Powers
from powersketch.powers.monomials import Monomials, monomial_count, monomials_fit
from powersketch.powers.programs import PowerProgram, Slice, all_powers, single_power
from powersketch.powers.repeated_squaring import (
    PowerSketch,
    algorithm_1,
    extreme_power,
    times_rows,
)
from powersketch.powers.sampled_monomials import SampledMonomials
from powersketch.powers.scaled_numbers import Scaled, ascending_powers
from powersketch.powers.tensor_sketch import TensorSketchPowers
from powersketch.powers.tree import TreeSketch
from powersketch.powers.unit_rows import to_one

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
    "PowerProgram",
    "PowerSketch",
    "Powers",
    "SampledMonomials",
    "Scaled",
    "Slice",
    "TensorSketchPowers",
    "TreeSketch",
    "adaptive_tuples",
    "affordable_draw",
    "algorithm_1",
    "all_powers",
    "ascending_powers",
    "extreme_power",
    "monomial_count",
    "monomials_fit",
    "single_power",
    "times_rows",
    "to_one",
]
