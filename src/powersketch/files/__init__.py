"""Files: rows and tables of many formats, block by block, and outputs that are whole or absent."""

from powersketch.files.outputs import atomic_write, check_outputs
from powersketch.files.rows import read_rows

__all__ = ["atomic_write", "check_outputs", "read_rows"]
