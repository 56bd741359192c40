"""Features from a file to a file under a limit of memory, against features in memory."""

import os
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from benchmarks.features.memory import COLUMNS, COMPONENTS, input_rows, peak_bytes
from benchmarks.report import Row, Table, at_least, at_most, from_fresh_process, print_figures
from benchmarks.timing import shortest, timed
from powersketch import PolynomialSketch
from powersketch.files import open_rows, transform_file

LIMIT_MB = 1000
BLOCK_ROWS = 1000
IN_MEMORY_ROWS = 250_000
# A disk takes 20 GB of input and output. A file system in memory takes what it has room for, a few
# times, as the first one has to fetch that memory from the system below.
PLACES = {"file system in memory": ("/dev/shm", 250_000, 4), "disk": (None, 2_500_000, 1)}
THREADS = (1, 2)


def file_streams(*, quick: bool) -> Table:
    rows = []
    for place, (folder, count, rounds) in PLACES.items():
        if folder is None or Path(folder).is_dir():
            rows += _measured_rows(place, folder, count // 10 if quick else count, rounds)
    return Table(
        "Features from file to file against features in memory",
        f"{COLUMNS} columns, {COMPONENTS} features of degree 4, float32, .npy; thousand rows a "
        f"second. In memory, transform fills a new array. Files are streamed by a process that may "
        f"have {LIMIT_MB} MB. Copied are the rows by the same stream without a map, once and "
        "first. The bar is the share of the rate in memory, for the command's default, one "
        "thread; what a disk can do is not ours to promise.",
        rows,
    )


def _measured_rows(place: str, folder: str | None, count: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        source = Path(name) / "rows.npy"
        write_rows(source, count)
        copied = from_fresh_process(__spec__.name, "copy", source, 1, rounds)["rows/ms"]
        rows = []
        for threads in THREADS:
            in_memory = from_fresh_process(__spec__.name, "memory", IN_MEMORY_ROWS, threads, 3)
            in_memory = in_memory["rows/ms"]
            stream = from_fresh_process(__spec__.name, "stream", source, threads, rounds)
            share = stream["rows/ms"] / in_memory
            cells = {
                "files on": place,
                "GB": 2 * source.stat().st_size / 1e9,
                "threads": threads,
                "in memory": in_memory,
                "copied": copied,
                "streamed": stream["rows/ms"],
                "share": share,
                "peak MB": stream["peak MB"],
            }
            bars = [at_least(share, 0.8), at_most(stream["peak MB"], LIMIT_MB)]
            rows.append(Row(cells, bars if threads == 1 and place != "disk" else bars[1:]))
    return rows


def write_rows(path: Path, count: int) -> None:
    """Write a .npy file of random rows, which are the same again after a while."""
    X = input_rows("C order", 20 * BLOCK_ROWS)
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, COLUMNS)}
    with path.open("wb") as stream:
        npy.write_array_header_1_0(stream, header)
        for start in range(0, count, len(X)):
            stream.write(X[: count - start].data)
        os.fsync(stream.fileno())
        # What follows is to read the disk, not the memory that the system keeps of it.
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Copy:
    """A map that does nothing."""

    def transform(self, X: np.ndarray) -> np.ndarray:
        return X

    def transform_into(self, X: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[:] = X
        return out


def measure(what: str, source: str, threads: int, rounds: int) -> None:
    sketch = PolynomialSketch(4, n_components=COMPONENTS, random_state=0, n_jobs=threads)
    if what == "memory":
        X = input_rows("C order", int(source))
        sketch.fit(X[:20_000])
        _, seconds = shortest(lambda: sketch.transform(X), rounds=rounds)
        print_figures({"rows/ms": len(X) / seconds / 1e3})
        return
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_MB * 10**6, resource.RLIM_INFINITY))
    rows = open_rows(source)
    feature_map = Copy() if what == "copy" else sketch.fit(next(rows.blocks(20_000)))
    output = Path(source).with_name("features.npy")
    best = 0.0
    for _ in range(rounds):
        (count, _), seconds = timed(lambda: transform_file(feature_map, rows, output))
        output.unlink()
        best = max(best, count / seconds / 1e3)
    print_figures({"rows/ms": best, "peak MB": peak_bytes() / 1e6})


MEASUREMENTS = (file_streams,)

if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
