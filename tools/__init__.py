"""Builds, checks and releases the distributions; `make` calls it, the library never does."""
