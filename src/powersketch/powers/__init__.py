"""Powers x^⊗p of vectors: sketched by repeated squaring, or exactly by monomials."""

import sys
from typing import TYPE_CHECKING

from powersketch.lazy_names import loader_of_names
from powersketch.powers.methods import BoundPowers, PowerMethod, PowerMethods, Powers, RowFormat
from powersketch.powers.monomials import Monomials, monomial_count, monomials_fit
from powersketch.powers.programs import PowerProgram, Slice, all_powers, single_power
from powersketch.powers.repeated_squaring import (
    PowerSketch,
    algorithm_1,
    extreme_power,
    times_rows,
)
from powersketch.powers.scaled_numbers import Scaled, ascending_powers

if TYPE_CHECKING:
    from powersketch.powers.adaptive_draws import adaptive_tuples, affordable_draw
    from powersketch.powers.complex_to_real import ComplexToReal
    from powersketch.powers.merged_tuples import AdaptiveTuples
    from powersketch.powers.sampled_monomials import SampledMonomials
    from powersketch.powers.tensor_sketch import TensorSketchPowers
    from powersketch.powers.tree import TreeSketch

__all__ = [
    "POWER_METHODS",
    "AdaptiveTuples",
    "BoundPowers",
    "ComplexToReal",
    "Monomials",
    "PowerMethod",
    "PowerMethods",
    "PowerProgram",
    "PowerSketch",
    "Powers",
    "RowFormat",
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
]

# What only other methods than the default need is imported when its name is first used.
_MODULES = {
    "AdaptiveTuples": "merged_tuples",
    "ComplexToReal": "complex_to_real",
    "SampledMonomials": "sampled_monomials",
    "TensorSketchPowers": "tensor_sketch",
    "TreeSketch": "tree",
    "adaptive_tuples": "adaptive_draws",
    "affordable_draw": "adaptive_draws",
}

POWER_METHODS = PowerMethods(
    sys.modules[__name__],
    {
        "power": "PowerSketch",
        "ctr": "ComplexToReal",
        "tree": "TreeSketch",
        "tensorsketch": "TensorSketchPowers",
    },
)

__getattr__ = loader_of_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
