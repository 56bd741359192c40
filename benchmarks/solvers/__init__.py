"""Kernel systems: iterations, residuals, time."""
