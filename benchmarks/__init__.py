"""Measurements of powersketch against other libraries and against the machine's limits."""
