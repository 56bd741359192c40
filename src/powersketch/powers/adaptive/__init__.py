"""Monomials of a power, drawn by their ridge leverage scores on the data."""

from powersketch.powers.adaptive.draws import adaptive_tuples, affordable_draw

__all__ = ["adaptive_tuples", "affordable_draw"]
