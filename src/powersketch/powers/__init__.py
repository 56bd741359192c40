"""Powers x^⊗p of vectors: sketched by repeated squaring, or exactly by monomials."""

from powersketch.powers.methods import BoundPowers, PowerMethod, Powers, RowFormat
from powersketch.powers.monomials import Monomials, monomial_count
from powersketch.powers.programs import PowerProgram, Slice, all_powers, single_power
from powersketch.powers.repeated_squaring import (
    PowerSketch,
    algorithm_1,
    extreme_power,
    times_rows,
)
from powersketch.powers.scaled_numbers import Scaled, ascending_powers

POWER_METHODS: dict[str, PowerMethod] = {
    "power": PowerSketch,
}

__all__ = [
    "POWER_METHODS",
    "BoundPowers",
    "Monomials",
    "PowerMethod",
    "PowerProgram",
    "PowerSketch",
    "Powers",
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
