"""The Gaussian kernel's specification: exponentials by a polynomial, in a fixed order."""

from typing import Any

import numpy as np

from powersketch.arrays import Float64, Real, Vector

_LEAST = -746.0  # of the arguments whose exponential may not be zero: 2^-1075 is exp(-745.13…)
_INVERSE_OF_LOG_2 = 1.4426950408889634
# Log 2 in two parts: an integer below 2^11 times the first one, a multiple of 2^-42, is exact.
_LOG_2_HIGH = 0.6931471805598903
_LOG_2_LOW = 5.497923018708371e-14
# Added to a number, 1.5 · 2^52 leaves no bits for a fraction; 2046 is twice the exponents' bias.
_INTEGERS = 1.5 * 2.0**52 + 2046.0
# Σ c_k r^k ≈ (e^r - 1 - r) / r² for |r| ≤ ½ log 2, by interpolation in the Chebyshev nodes: e^r
# from it is off by 1.6e-17 of itself, before rounding.
_COEFFICIENTS = (
    0.5000000000000001,
    0.16666666666666669,
    0.041666666666624164,
    0.008333333333330065,
    0.0013888888917196719,
    0.00019841269863040545,
    2.4801521322368448e-05,
    2.7557268480309837e-06,
    2.7620075880100385e-07,
    2.510037583265122e-08,
)


def gaussian_values(
    products: Float64,
    left: Vector,
    right: Vector,
    gamma: float,
    dtype: np.dtype[Any],
    *,
    threads: int = 1,
) -> Real:
    """Return exp(-gamma · max(left_i + right_j - 2 products_ij, 0)), rounded to `dtype` once."""
    del threads
    with np.errstate(over="ignore", invalid="ignore"):
        distances = (-2.0 * products + left[:, np.newaxis]) + right
        # Rounding may leave a distance just below zero; what is not a number stays that.
        values: Real = _exponential(np.maximum(distances, 0.0) * -gamma).astype(dtype, copy=False)
    return values


def _exponential(x: Float64) -> Float64:
    """Return exp(x) for x ≤ 0, within a unit of the last place; NaN stays NaN."""
    zero = x < _LEAST
    x = np.where(zero, 0.0, x)
    # x = n log 2 + remainder, and the last bits of `shifted` are n + 2046.
    shifted = x * _INVERSE_OF_LOG_2 + _INTEGERS
    n = shifted - _INTEGERS
    remainder = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    first, second = _factors(shifted)
    return np.where(zero, 0.0, _exponential_near_zero(remainder) * first * second)


def _exponential_near_zero(r: Float64) -> Float64:
    """Return exp(r) for |r| ≤ ½ log 2, in the order of Estrin's scheme."""
    c = _COEFFICIENTS
    square = r * r
    fourth = square * square
    low = (r * c[1] + c[0]) + square * (r * c[3] + c[2])
    middle = (r * c[5] + c[4]) + square * (r * c[7] + c[6])
    high = r * c[9] + c[8]
    terms = (low + fourth * middle) + (fourth * fourth) * high
    return (r + square * terms) + 1.0


def _factors(shifted: Float64) -> tuple[Float64, Float64]:
    """Return two powers of two whose product is 2^n.

    Their exponents with bias add up to n + 2046. Two are needed below the smallest normal number,
    where only the second one rounds.
    """
    bits = shifted.view(np.uint64)
    half = bits >> np.uint64(1)
    place = np.uint64(52)
    return (half << place).view(np.float64), ((bits - half) << place).view(np.float64)
