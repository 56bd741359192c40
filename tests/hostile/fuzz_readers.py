"""Damaged files of every format: each is read right, or refused with its name and its line.

``python -m tests.hostile.fuzz_readers --count 100000`` prints how many were read and refused, and
ends with 1 after a failure. The same seed damages the same files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import resource
import signal
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import zarr
from pyarrow import ipc, parquet
from scipy import sparse

from powersketch.exceptions import InputError
from powersketch.files import read_rows
from tests.hostile import plain_parsers
from tests.hostile.damaged_files import Format, formats

_ROOM = 2**30
_SECONDS = 20.0
_TEXTS = ("csv", "svmlight", "mtx")


class HangError(BaseException):
    """A file took too long."""


@dataclass
class Tally:
    """What became of the damaged files of a format."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(count: int, seed: int, folder: Path, only: str | None = None) -> dict[str, Tally]:
    """Damage so many files, as many of each format or of one only; return what became of them."""
    canary = folder / "canary"
    kinds = [kind for kind in formats(canary) if only in (None, kind.name)]
    tallies = {kind.name: Tally() for kind in kinds}
    with limited():
        for kind in kinds:
            for number in range(count // len(kinds)):
                _try_one(kind, f"{seed}/{kind.name}/{number}", folder, tallies[kind.name])
                if canary.exists():
                    canary.rmdir()
                    tallies[kind.name].failures.append(f"{number}: a pickle was loaded")
    return tallies


def _try_one(kind: Format, name: str, folder: Path, tally: Tally) -> None:
    draws = random.Random(name)
    content = kind.damage(draws.choice(kind.whole), draws)
    path = folder / f"damaged{kind.suffix}"
    kind.write(content, path)
    tally.counts["damaged"] += 1
    try:
        outcome, problem = _outcome(kind, path, content)
    except (Exception, HangError) as error:
        outcome, problem = "failed", f"{type(error).__name__}: {error}"
    tally.counts[outcome] += 1
    if problem:
        tally.failures.append(f"{name}: {problem}\n    {content[:600]!r}")


def _outcome(kind: Format, path: Path, content: bytes) -> tuple[str, str]:
    """Return whether the file was read or refused, and what was wrong about that."""
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            rows = read_rows(path)
    except InputError as error:
        problem = _problem_of_refusal(kind, path, error)
        return ("failed" if problem else "refused"), problem
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    problem = _problem_of_reading(kind, rows, path, content)
    return ("failed" if problem else "read"), problem


def _problem_of_refusal(kind: Format, path: Path, error: InputError) -> str:
    message = str(error)
    if not message.startswith(path.name):
        return f"the file is not named: {message}"
    placed = re.match(r"[^ ,]+(, line [1-9]\d*[:,]| has (no|\d+) (rows|columns))", message)
    if kind.name in _TEXTS and not placed:
        return f"the line is not named: {message}"
    if isinstance(error.__cause__, MemoryError):
        return f"memory was taken for what the file does not hold: {message}"
    if re.search("unsafe|pickle", message):
        return f"it advises to unpickle: {message}"
    return ""


def _problem_of_reading(kind: Format, rows: Any, path: Path, content: bytes) -> str:
    expected = _EXPECTED[kind.name](content)
    found = _canonical(rows)
    if expected is None:
        return f"read as {found!r}, and should be refused"
    wanted = _canonical(expected)
    if found.shape != wanted.shape or (found != wanted).nnz:
        return f"read as {found!r}, and should be {wanted!r}"
    return ""


def _canonical(rows: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(rows, dtype=np.float64)
    matrix.sum_duplicates()
    return matrix


def _by_numpy(content: bytes) -> Any:
    return np.load(io.BytesIO(content), allow_pickle=False)


def _by_archive(content: bytes) -> Any:
    archive = np.load(io.BytesIO(content), allow_pickle=False)
    if {"format", "shape", "data"} <= set(archive.files):
        return sparse.load_npz(io.BytesIO(content))
    usual = [name for name in ("X", "x", "data") if name in archive.files]
    return archive[archive.files[0] if len(archive.files) == 1 else usual[0]]


def _by_arrow(content: bytes) -> Any:
    table = parquet.ParquetFile(io.BytesIO(content)).read()
    return np.array([column.to_pylist() for column in table.columns], dtype=np.float64).T


def _by_feather(content: bytes) -> Any:
    table = ipc.open_file(io.BytesIO(content)).read_all()
    return np.array([column.to_pylist() for column in table.columns], dtype=np.float64).T


def _by_hdf5(content: bytes) -> Any:
    with h5py.File(io.BytesIO(content), "r") as file:
        names = [*file]
        return file[names[0] if len(names) == 1 else "X"][()]


def _by_zarr(content: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(folder)
        return zarr.open_array(store=folder, mode="r")[:]


_EXPECTED: dict[str, Callable[[bytes], Any]] = {
    "csv": plain_parsers.table,
    "svmlight": plain_parsers.svmlight,
    "mtx": plain_parsers.matrix_market,
    "npy": _by_numpy,
    "npz dense": _by_archive,
    "npz sparse": _by_archive,
    "parquet": _by_arrow,
    "feather": _by_feather,
    "hdf5": _by_hdf5,
    "zarr": _by_zarr,
}


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Leave little memory beyond what is in use, and turn an alarm into an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def ring(*arguments: Any) -> None:
        raise HangError(f"more than {_SECONDS} seconds")

    old = signal.signal(signal.SIGALRM, ring)
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, old)


def main() -> int:
    """Run with the options of the command line, print the counts, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="damaged files of all formats")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", help="one format only, such as csv or 'npz sparse'")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tallies = run(options.count, options.seed, Path(folder), options.format)
    print(f"{'format':<12}{'damaged':>10}{'read':>10}{'refused':>10}{'failures':>10}")
    for name, tally in tallies.items():
        numbers = [tally.counts[what] for what in ("damaged", "read", "refused")]
        print(f"{name:<12}" + "".join(f"{n:>10}" for n in (*numbers, len(tally.failures))))
    for name, tally in tallies.items():
        for failure in tally.failures[:20]:
            print(f"{name}: {failure}", file=sys.stderr)
    return int(any(tally.failures for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
