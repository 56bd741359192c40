"""Every method side by side on the user's own data."""

from powersketch.comparison.comparing import compare
from powersketch.comparison.methods import METHODS, Method
from powersketch.comparison.recommendation import Recommendation
from powersketch.comparison.results import Comparison, ExactKernel, Measurement
from powersketch.comparison.tables import (
    HEADINGS,
    INTERRUPTED,
    TEXT_HEADINGS,
    exact_line,
    failure_lines,
    table_rows,
    title,
)
from powersketch.comparison.units import bytes_text
from powersketch.comparison.writing import replaced

__all__ = [
    "HEADINGS",
    "INTERRUPTED",
    "METHODS",
    "TEXT_HEADINGS",
    "Comparison",
    "ExactKernel",
    "Measurement",
    "Method",
    "Recommendation",
    "bytes_text",
    "compare",
    "exact_line",
    "failure_lines",
    "replaced",
    "table_rows",
    "title",
]
