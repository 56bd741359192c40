"""A model beside others on rows that it has not seen: in figures, in words, on a page."""

from powersketch.reports.assessment import assess, automatic_model, fitted
from powersketch.reports.results import ModelReport, Score

__all__ = ["ModelReport", "Score", "assess", "automatic_model", "fitted"]
