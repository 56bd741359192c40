"""Kernel systems solved with the help of sketches."""
