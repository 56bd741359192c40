"""Files that appear when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a name beside the path to write to; at the end the file takes the path itself.

    Where writing fails, what was there before stays.
    """
    final = Path(path)
    unfinished = final.with_name(f".{final.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, final)
    finally:
        unfinished.unlink(missing_ok=True)
