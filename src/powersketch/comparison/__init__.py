"""Every method side by side on the user's own data."""

from powersketch.comparison.comparing import compare
from powersketch.comparison.methods import METHODS, Method
from powersketch.comparison.recommendation import Recommendation
from powersketch.comparison.results import Comparison, ExactKernel, Measurement

__all__ = [
    "METHODS",
    "Comparison",
    "ExactKernel",
    "Measurement",
    "Method",
    "Recommendation",
    "compare",
]
