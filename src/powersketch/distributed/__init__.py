"""Dask: the same estimators for rows on many machines."""

from powersketch.distributed.engine import ENGINE

__all__ = ["ENGINE"]
