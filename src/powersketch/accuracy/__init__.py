"""Certificates, statistical dimension and sizes of feature maps."""

from powersketch.accuracy.certificates import Certificate, certify
from powersketch.accuracy.dimension import StatisticalDimension, statistical_dimension
from powersketch.accuracy.entrywise import EntrywiseError
from powersketch.accuracy.intervals import Interval
from powersketch.accuracy.sizing import RequiredComponents, required_components
from powersketch.accuracy.spectral import SpectralError

__all__ = [
    "Certificate",
    "EntrywiseError",
    "Interval",
    "RequiredComponents",
    "SpectralError",
    "StatisticalDimension",
    "certify",
    "required_components",
    "statistical_dimension",
]
