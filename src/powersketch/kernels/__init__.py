"""Exact kernels, the ground truth that every feature map approximates."""

from powersketch.kernels.polynomial import Polynomial

__all__ = ["Polynomial"]
