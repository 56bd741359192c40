"""Choices on a pilot: columns, kernel, metric, features, their number, and the solver."""
