"""Files: rows and tables of many formats, block by block, and outputs that are whole or absent."""

from powersketch.files.data_frames import is_table, read_table, reading_code, table_blocks
from powersketch.files.outputs import atomic_write, check_outputs
from powersketch.files.rows import check_matrix, is_data, open_rows, read_rows
from powersketch.files.sinks import Sink, open_sink
from powersketch.files.sources import RowSource
from powersketch.files.transforming import transform_file

__all__ = [
    "RowSource",
    "Sink",
    "atomic_write",
    "check_matrix",
    "check_outputs",
    "is_data",
    "is_table",
    "open_rows",
    "open_sink",
    "read_rows",
    "read_table",
    "reading_code",
    "table_blocks",
    "transform_file",
]
