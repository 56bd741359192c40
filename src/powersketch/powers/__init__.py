"""Powers x^⊗p of vectors: sketched by repeated squaring, or exactly by monomials."""

from powersketch.powers.monomials import Monomials, monomial_count
from powersketch.powers.programs import PowerProgram, Slice, all_powers, single_power
from powersketch.powers.repeated_squaring import (
    BoundPowerSketch,
    PowerSketch,
    RowFormat,
    algorithm_1,
    extreme_power,
    times_rows,
)
from powersketch.powers.scaled_numbers import Scaled, ascending_powers

__all__ = [
    "BoundPowerSketch",
    "Monomials",
    "PowerProgram",
    "PowerSketch",
    "RowFormat",
    "Scaled",
    "Slice",
    "algorithm_1",
    "all_powers",
    "ascending_powers",
    "extreme_power",
    "monomial_count",
    "single_power",
    "times_rows",
]
