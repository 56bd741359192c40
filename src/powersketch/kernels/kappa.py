"""The functions of a cosine that arc-cosine and neural tangent kernels are made of [CS09].

Each is twice an expectation over two standard normal variables of correlation α.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from powersketch.kernels.rows import Float64

__all__ = ["kappa_0", "kappa_1", "kappa_2", "kappas_0_and_1"]

# With φ = π − arccos α, π κ₁ = sin φ − φ cos φ and π κ₂ = φ (2 + cos 2φ) − 3/2 sin 2φ, whose terms
# cancel where φ is small: there φ³ and φ⁵ times a power series of φ² take over. Up to φ = 1 what is
# left after these terms is below the rounding errors.
_SMALL_ANGLE = 1.0
_KAPPA_1_SERIES = [
    (-1) ** (k + 1) * 2 * k / (math.pi * math.factorial(2 * k + 1)) for k in range(1, 15)
]
_KAPPA_2_SERIES = [
    (-1) ** k * (k - 1) * 2 ** (2 * k + 1) / (math.pi * math.factorial(2 * k + 1))
    for k in range(2, 16)
]


def kappa_0(cosines: ArrayLike) -> Float64:
    r"""Return :math:`\kappa_0(\alpha) = 1 - \arccos(\alpha) / \pi`, which is 1 at 1.

    Twice the probability that two normal variables of correlation :math:`\alpha` are positive.

    Parameters
    ----------
    cosines : array-like
        The cosines :math:`\alpha`; what lies outside [-1, 1] counts as the nearer end.

    Returns
    -------
    ndarray of the same shape
        In float64.

    Examples
    --------
    >>> from powersketch.kernels import kappa_0
    >>> kappa_0([-1.0, 0.0, 1.0])
    array([0. , 0.5, 1. ])
    """
    return _angles_to_opposite(_clipped(cosines)) / math.pi


def kappa_1(cosines: ArrayLike) -> Float64:
    r"""Return :math:`\kappa_1(\alpha) = (\sin\theta + (\pi - \theta) \cos\theta) / \pi`.

    Here :math:`\theta = \arccos\alpha`. The value at 1 is 1. Twice the expected product of two
    standard normal variables of correlation :math:`\alpha`, each cut off below zero.

    Parameters
    ----------
    cosines : array-like
        The cosines :math:`\alpha`; what lies outside [-1, 1] counts as the nearer end.

    Returns
    -------
    ndarray of the same shape
        In float64, with a small relative error even next to the zero at -1.

    Examples
    --------
    >>> from powersketch.kernels import kappa_1
    >>> kappa_1([-1.0, 0.0, 1.0]).round(6)
    array([0.     , 0.31831, 1.     ])
    """
    return kappas_0_and_1(cosines)[1]


def kappa_2(cosines: ArrayLike) -> Float64:
    r"""Return :math:`\kappa_2(\alpha) = (\frac32\sin2\theta+(\pi-\theta)(2+\cos2\theta))/\pi`.

    Here :math:`\theta = \arccos\alpha`. The value at 1 is 3. Twice the expected product of the
    squares of two standard normal variables of correlation :math:`\alpha`, each cut off below zero.

    Parameters
    ----------
    cosines : array-like
        The cosines :math:`\alpha`; what lies outside [-1, 1] counts as the nearer end.

    Returns
    -------
    ndarray of the same shape
        In float64, with a small relative error even next to the zero at -1.

    Examples
    --------
    >>> from powersketch.kernels import kappa_2
    >>> kappa_2([-1.0, 0.0, 1.0])
    array([0. , 0.5, 3. ])
    """
    cosines = _clipped(cosines)
    angles = _angles_to_opposite(cosines)
    values = (3.0 * cosines * _sines(cosines) + angles * (1.0 + 2.0 * cosines**2)) / math.pi
    return _with_small_angles(values, angles, 5, _KAPPA_2_SERIES)


def kappas_0_and_1(cosines: ArrayLike) -> tuple[Float64, Float64]:
    """Return both functions for the price of one arc cosine."""
    cosines = _clipped(cosines)
    angles = _angles_to_opposite(cosines)
    values = (_sines(cosines) + cosines * angles) / math.pi
    return angles / math.pi, _with_small_angles(values, angles, 3, _KAPPA_1_SERIES)


def _clipped(cosines: ArrayLike) -> Float64:
    clipped: Float64 = np.clip(np.asarray(cosines, dtype=np.float64), -1.0, 1.0)
    return clipped


def _angles_to_opposite(cosines: Float64) -> Float64:
    """Return π − arccos α, which has all its digits next to α = −1 as well."""
    return np.arccos(-cosines)


def _sines(cosines: Float64) -> Float64:
    return np.sqrt((1.0 - cosines) * (1.0 + cosines))


def _with_small_angles(
    values: Float64, angles: Float64, power: int, series: list[float]
) -> Float64:
    small = angles < _SMALL_ANGLE
    values = np.asarray(values)
    values[small] = angles[small] ** power * polyval(angles[small] ** 2, series)
    return values
