"""Models on disk: one file of plain data, which holds no code and can hurt nobody."""

from powersketch.storage.models import describe, load, save

__all__ = ["describe", "load", "save"]
