"""Feature maps with scikit-learn's interface."""

from powersketch.feature_maps.polynomial import PolynomialSketch

__all__ = ["PolynomialSketch"]
