"""Where results may be written, and files that appear under their name when they are complete."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

from powersketch.exceptions import InputError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STANDARD_STREAMS = (1, 2)  # standard output and standard error


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside the path to write to, which then takes the path's place.

    If writing fails or is interrupted, the old file stays and the temporary one is removed. A link
    stays a link: the file that it leads to is replaced, and keeps its permissions.
    """
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f".{secrets.token_hex(8)}.unfinished")
    try:
        # O_EXCL: never open a file of this name that somebody else has put there.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if final.exists():
            shutil.copymode(final, temporary)
        with disk_errors(final):
            yield temporary
            os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Say in one sentence which file a disk has no room for."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise OSError(
            f"{path.name} cannot be written, as the system says: {os.strerror(error.errno)}; free "
            "some room, or choose another disk: nothing was left behind."
        ) from error


def check_outputs(inputs: Sequence[Path], outputs: Sequence[Path | None]) -> None:
    """Refuse outputs that cannot be written, or would overwrite an input or another output.

    Every command calls it before any work. Files are the same whichever way leads to them: by
    links, by relative paths, or by other capitals where the file system does not tell them apart.
    """
    wanted = [path for path in outputs if path is not None]
    for output in wanted:
        _check_writable(output)
        for given in inputs:
            if _same_file(given, output):
                raise InputError(
                    f"{output} is the file that is read, {given}; choose another name for the "
                    "output."
                )
    for one, other in combinations(wanted, 2):
        if _same_file(one, other):
            raise InputError(
                f"{one} and {other} are the same file; choose a name of its own for every output."
            )


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path} is a device or a pipe; give the name of a file, which can be replaced."
        )
    if any(_is_printed_to(path, descriptor) for descriptor in _STANDARD_STREAMS):
        raise InputError(
            f"{path} is where the command prints its table and its messages; choose another name "
            "for the output."
        )
    # A link stays, and what it leads to is replaced.
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(
            f"nothing can be written to {path.parent}, where {path.name} is to be; choose a folder "
            "that exists and that is yours."
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} is protected against writing; choose another name.")


def _is_printed_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False  # There is no such file yet, or the stream is closed.


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    if one.exists() or other.exists():
        return False
    # The system cannot tell whether two names of files that do not exist yet are the same.
    first, second = (Path(os.path.realpath(path)) for path in (one, other))
    same_folder = first.parent == second.parent or first.parent.samefile(second.parent)
    return same_folder and _folded(first.name) == _folded(second.name)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
