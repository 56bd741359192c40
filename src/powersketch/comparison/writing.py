"""Files that appear when they are complete."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a name beside the path to write to; at the end the file takes the path itself.

    Where writing fails or is interrupted, what was there before stays, and nothing else does. A
    link stays a link: what it leads to is replaced, and keeps its permissions.
    """
    final = Path(os.path.realpath(path))
    unfinished = final.with_name(f".{secrets.token_hex(8)}.unfinished")
    try:
        # No file of this name is opened that somebody else has put there.
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if final.exists():
            shutil.copymode(final, unfinished)
        yield unfinished
        os.replace(unfinished, final)
    finally:
        unfinished.unlink(missing_ok=True)
