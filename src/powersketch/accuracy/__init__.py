"""Certificates, statistical dimension and sizes of feature maps."""

from powersketch.accuracy.certificates import Certificate, certify
from powersketch.accuracy.data_rows import DataRows, Float64
from powersketch.accuracy.dimension import StatisticalDimension, statistical_dimension
from powersketch.accuracy.entrywise import EntrywiseError
from powersketch.accuracy.growth import LARGEST_SIZE, grown_size
from powersketch.accuracy.intervals import Interval
from powersketch.accuracy.lanczos import ritz_values
from powersketch.accuracy.sizing import RequiredComponents, required_components
from powersketch.accuracy.spectral import SpectralError, check_alpha_is_felt

__all__ = [
    "LARGEST_SIZE",
    "Certificate",
    "DataRows",
    "EntrywiseError",
    "Float64",
    "Interval",
    "RequiredComponents",
    "SpectralError",
    "StatisticalDimension",
    "certify",
    "check_alpha_is_felt",
    "grown_size",
    "required_components",
    "ritz_values",
    "statistical_dimension",
]
