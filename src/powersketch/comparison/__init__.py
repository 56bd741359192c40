"""Every method side by side on the user's own data."""

from powersketch.comparison.methods import METHODS, Method
from powersketch.comparison.recommend import Recommendation, best_line
from powersketch.comparison.results import Comparison, ExactKernel, Measurement, atomic_write
from powersketch.comparison.run import compare
from powersketch.comparison.text import (
    HEADINGS,
    INTERRUPTED,
    TEXT_HEADINGS,
    bytes_text,
    exact_line,
    note_lines,
    table_rows,
    title,
)

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
    "atomic_write",
    "best_line",
    "bytes_text",
    "compare",
    "exact_line",
    "note_lines",
    "table_rows",
    "title",
]
