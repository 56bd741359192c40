"""The numbers of components in the theorems of [SWYZ21], with constant one, without logarithms."""

from __future__ import annotations

import math
from typing import Any

from powersketch.accuracy.data_rows import DataRows, FittedMap
from powersketch.kernels import ArcCosine, Gaussian, NeuralTangent, Polynomial


def paper_size(sketch: FittedMap, rows: DataRows, eps: float) -> tuple[int, str]:
    """Return the size for a spectral error eps of K itself, without a ridge, and its formula."""
    kernel, count = sketch.kernel_, rows.count
    if isinstance(kernel, Polynomial):
        size = count * kernel.degree**2 / eps**2
        return math.ceil(size), f"n p² / eps² with the degree p = {kernel.degree} (Section 5)"
    degree, formula = _cut_off(sketch, rows, eps)
    size = count * degree**3 / eps**2
    return math.ceil(size), f"n q³ / eps² with q = {degree:.4g} degrees, {formula}"


def _cut_off(sketch: Any, rows: DataRows, eps: float) -> tuple[float, str]:
    """Return how many terms of the series the theorem takes."""
    kernel, count = sketch.kernel_, rows.count
    if isinstance(kernel, Gaussian):
        # The theorem is for exp(−‖x − y‖² / 2), to which rows are scaled by √(2 gamma).
        squared_radius = 2.0 * kernel.gamma * _largest_squared_norm(rows)
        return squared_radius + math.log(count / eps), "r² + log(n / eps) (Section 6.1)"
    if isinstance(kernel, ArcCosine | NeuralTangent):
        # Coefficients fall like l^(−3/2) for steps and tangents, and faster for smoother units.
        power = 1.5 + (kernel.order if isinstance(kernel, ArcCosine) else 0)
        return 1.0 + (count / eps) ** (1.0 / power), f"1 + (n / eps)^(1/{power:g}) (Section 6.2)"
    degrees = getattr(sketch, "degrees_", None)
    highest = float(degrees[-1]) if degrees else math.log(count / eps)
    return max(highest, 1.0), "the series that the map takes (Section 6.2)"


def _largest_squared_norm(rows: DataRows) -> float:
    matrix = rows.matrix
    squares = matrix.multiply(matrix) if hasattr(matrix, "multiply") else matrix * matrix
    return float(squares.sum(axis=1).max())
