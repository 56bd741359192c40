"""Quotients that are zero where there is nothing to divide by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def ratio_or_zero(
    numerator: float | NDArray[Any], denominator: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return numerator / denominator, and zero where the denominator is not above zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)
