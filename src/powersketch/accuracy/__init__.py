"""Certificates, statistical dimension and sizes of feature maps."""

from powersketch.accuracy.certificate import Certificate, EntrywiseError, certify
from powersketch.accuracy.dimension import StatisticalDimension, statistical_dimension
from powersketch.accuracy.growth import RequiredComponents, grown_size, required_components
from powersketch.accuracy.pairs import Interval
from powersketch.accuracy.rows import DataRows, divided_positions
from powersketch.accuracy.spectral import SpectralError, check_alpha_above_rounding

__all__ = [
    "Certificate",
    "DataRows",
    "EntrywiseError",
    "Interval",
    "RequiredComponents",
    "SpectralError",
    "StatisticalDimension",
    "certify",
    "check_alpha_above_rounding",
    "divided_positions",
    "grown_size",
    "required_components",
    "statistical_dimension",
]
