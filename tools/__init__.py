"""Builds, checks and releases the distributions; `make` calls it, and no part of the library does."""
