"""Large reads and writes past the system's cache of files, where the system lets them.

What streams once through a program only drives other things out of that cache, and for every page
of it the system takes longer than a fast disk.
"""

from __future__ import annotations

import errno
import fcntl
import math
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError

PAGE = mmap.PAGESIZE
"""Places in files and in memory have to be multiples of it."""

Bytes = NDArray[np.uint8]
# Linux has them. Where there is no cache to pass by, everything goes through it.
_DIRECT = getattr(os, "O_DIRECT", None)
_ONLY_CACHED = getattr(os, "RWF_NOWAIT", None)
# Since Linux 6.14: the system reads ahead, and forgets what it had not in its cache before. Without
# that, reading fills all memory there is with pages, which takes longer than to use a few again.
_FORGOTTEN = 0x80 if sys.platform == "linux" else None
_REFUSALS = (errno.EINVAL, errno.EOPNOTSUPP, errno.EAGAIN)


class UnbufferedFile:
    """An open file, read and written at any place by any thread."""

    def __init__(self, path: Path, flags: int) -> None:
        self._cached: int | None = os.open(path, flags)
        self._direct = None if _DIRECT is None else _opened(path, flags | _DIRECT)
        self._forgetting = _FORGOTTEN

    def close(self) -> None:
        """Close the file, if it is open."""
        for number in (self._cached, self._direct):
            if number is not None:
                os.close(number)
        self._cached = self._direct = None

    def lock(self, problem: str) -> None:
        """Let no other process lock the file before this one ends or closes it."""
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{problem}; wait until it is done, or choose another name.") from None

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        os.fsync(self._number)

    @property
    def _number(self) -> int:
        if self._cached is None:
            raise ValueError("the file is closed.")
        return self._cached

    def read(self, start: int, size: int) -> tuple[Bytes, int]:
        """Return bytes of the file, and how many of them come before those asked for."""
        before = start % PAGE
        buffer = aligned_empty((-(-(before + size) // PAGE) * PAGE,), np.uint8)
        done = self._copied_from_cache(buffer, start - before) if self._forgetting is None else 0
        while done < before + size:
            # What ends within a page is read again from the page's beginning.
            page = done - done % PAGE
            reached = page + self._read(buffer[page:], start - before + page)
            if reached <= done:
                raise ValueError("it became shorter while it was read.")
            done = reached
        return buffer, before

    def _copied_from_cache(self, buffer: Bytes, start: int) -> int:
        """Copy what the system has in memory anyway; return how many bytes that is."""
        if self._direct is None or _ONLY_CACHED is None:
            return 0
        try:
            return os.preadv(self._number, [buffer.data], start, _ONLY_CACHED)
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            return 0

    def _read(self, buffer: Bytes, start: int) -> int:
        if self._forgetting is not None:
            try:
                return os.preadv(self._number, [buffer.data], start, self._forgetting)
            except OSError as error:
                if error.errno not in _REFUSALS:
                    raise
                self._forgetting = None
        if self._direct is not None:
            try:
                return os.preadv(self._direct, [buffer.data], start)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
        return os.preadv(self._number, [buffer.data], start)

    def write(self, content: Bytes, start: int) -> None:
        """Write bytes to a place of the file, its whole pages past the cache."""
        done = self._written_directly(content, start)
        while done < content.size:
            done += os.pwrite(self._number, content[done:].data, start + done)

    def _written_directly(self, content: Bytes, start: int) -> int:
        size, done = content.size - content.size % PAGE, 0
        if self._direct is None or start % PAGE or content.ctypes.data % PAGE:
            return 0
        try:
            while done < size:
                done += os.pwrite(self._direct, content[done:size].data, start + done)
        except OSError as error:
            # After a piece that ended within a page, too: the cache takes the rest.
            if error.errno != errno.EINVAL:
                raise
        return done


def _opened(path: Path, flags: int) -> int | None:
    """Return the number of an open file, or None where it cannot be opened in this way."""
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        return None


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return an array of any content that begins with a page of memory."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.empty(size + PAGE, dtype=np.uint8)
    first = -buffer.ctypes.data % PAGE
    aligned: NDArray[Any] = buffer[first : first + size].view(dtype)
    return aligned.reshape(shape)


def whole_page_rows(row_bytes: int) -> int:
    """Return the least number of rows that fill whole pages."""
    return PAGE // math.gcd(row_bytes, PAGE)
