"""Dask: the same estimators for rows on many machines."""

from powersketch.distributed.engine import ENGINE
from powersketch.distributed.files import connected, lazy_table, target_blocks
from powersketch.distributed.running import telling
from powersketch.distributed.tables import sampled_table

__all__ = [
    "ENGINE",
    "connected",
    "in_same_parts",
    "lazy_table",
    "sampled_table",
    "target_blocks",
    "telling",
]
