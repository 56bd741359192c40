"""Every method side by side on the user's own data."""

from powersketch.comparison.methods import METHODS, Method
from powersketch.comparison.prediction import (
    BOOSTING,
    ERROR_NAMES,
    TASKS,
    Baseline,
    Task,
    baseline_models,
    task_of,
)
from powersketch.comparison.recommend import Recommendation, best_code, best_line
from powersketch.comparison.results import Comparison, ExactKernel, Measurement
from powersketch.comparison.run import compare
from powersketch.comparison.text import (
    TEXT_HEADINGS,
    headings,
    remaining_lines,
    table_rows,
    title,
)
from powersketch.pages import bytes_text

__all__ = [
    "BOOSTING",
    "ERROR_NAMES",
    "METHODS",
    "TASKS",
    "TEXT_HEADINGS",
    "Baseline",
    "Comparison",
    "ExactKernel",
    "Measurement",
    "Method",
    "Recommendation",
    "Task",
    "baseline_models",
    "best_code",
    "best_line",
    "bytes_text",
    "compare",
    "headings",
    "remaining_lines",
    "table_rows",
    "task_of",
    "title",
]
