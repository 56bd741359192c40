"""Ordinary tables: columns of numbers, categories, dates and gaps become columns of numbers."""

from powersketch.tables.preparation import TablePreparation

__all__ = ["TablePreparation"]
