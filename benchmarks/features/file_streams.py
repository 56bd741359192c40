"""Features from a file to a file under a limit of memory, against memory and plain writes."""

import mmap
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from benchmarks.data import normal_rows
from benchmarks.features.memory import peak_bytes
from benchmarks.report import Row, Table, at_least, at_most, from_fresh_process, print_figures
from benchmarks.timing import shortest, timed
from powersketch import GaussianSketch, PolynomialSketch
from powersketch.files import open_rows, transform_file

LIMIT_MB = 1000
COLUMNS, COMPONENTS = 256, 1024
ROW_BYTES = 4 * (COLUMNS + COMPONENTS)
FIT_ROWS, IN_MEMORY_ROWS = 20_000, 250_000
MAPS = {
    "polynomial": PolynomialSketch(4, n_components=COMPONENTS, random_state=0),
    "Gaussian": GaussianSketch("scale", n_components=COMPONENTS, random_state=0),
}
PLACES = {"memory": "/dev/shm", "disk": None}
# GB of rows and features together, threads; one row for each, and the bar is that of one thread.
STREAMS = {"memory": ((2, 1), (8, 1)), "disk": ((2, 1), (8, 1), (20, 1), (20, 2))}
ROUNDS = 3
PIECE = 1 << 24


def file_streams(*, quick: bool) -> Table:
    rows = [
        _measured_row(place, gigabytes / 10 if quick else gigabytes, name, threads)
        for place, folder in PLACES.items()
        if folder is None or Path(folder).is_dir()
        for gigabytes, threads in STREAMS[place]
        for name in MAPS
    ]
    return Table(
        "Features from file to file against memory and plain writes",
        f"{COLUMNS} columns, {COMPONENTS} features, float32, .npy; thousand rows a second. The "
        "polynomial's degree is 4, the Gaussian's gamma 'scale'. GB are those of both files, on "
        "the system's disk or on its file system in memory. In memory: transform of 250,000 rows "
        f"into a new array, best of {ROUNDS}. Written: as many bytes as the features have, past "
        "the system's cache, without any map or rows, best of before and after the stream. "
        f"Streamed: once, by a process that may have {LIMIT_MB} MB; of rows on the disk nothing is "
        "cached before. The bar is the share of the slower one, in memory or written, for the "
        "command's default, one thread.",
        rows,
    )


def _measured_row(place: str, gigabytes: float, name: str, threads: int) -> Row:
    count = int(gigabytes * 1e9) // ROW_BYTES
    with tempfile.TemporaryDirectory(dir=PLACES[place]) as folder:
        source = Path(folder) / "rows.npy"
        write_rows(source, count)
        in_memory = from_fresh_process(__spec__.name, "memory", name, source, threads)["rows/ms"]
        written = _written(Path(folder) / "written", count)
        stream = from_fresh_process(__spec__.name, "stream", name, source, threads)
        written = max(written, _written(Path(folder) / "written", count))
    streamed, peak = stream["rows/ms"], stream["peak MB"]
    share = streamed / min(in_memory, written)
    cells = {
        "files in": place,
        "map": name,
        "GB": gigabytes,
        "threads": threads,
        "in memory": in_memory,
        "written": written,
        "streamed": streamed,
        "of memory": streamed / in_memory,
        "of the slower": share,
        "peak MB": peak,
    }
    bars = [at_least(share, 0.8), at_most(peak, LIMIT_MB)]
    return Row(cells, bars if threads == 1 else bars[1:])


def write_rows(path: Path, count: int) -> None:
    """Write a .npy file of random rows, which are the same again after a while."""
    X = normal_rows(FIT_ROWS, COLUMNS)
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, COLUMNS)}
    with path.open("wb") as stream:
        npy.write_array_header_1_0(stream, header)
        for start in range(0, count, len(X)):
            stream.write(X[: count - start].data)
        os.fsync(stream.fileno())
        # What follows is to read the disk, not the memory that the system keeps of it.
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(what: str, name: str, source: Path, threads: int) -> None:
    feature_map = MAPS[name].set_params(n_jobs=threads)
    if what == "memory":
        print_figures({"rows/ms": _in_memory(feature_map)})
        return
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_MB * 10**6, resource.RLIM_INFINITY))
    rows = open_rows(source)
    feature_map.fit(next(rows.blocks(FIT_ROWS)))
    (count, _), seconds = timed(
        lambda: transform_file(feature_map, rows, source.with_name("features.npy"))
    )
    source.with_name("features.npy").unlink()
    print_figures({"rows/ms": count / seconds / 1e3, "peak MB": peak_bytes() / 1e6})


def _in_memory(feature_map: Any) -> float:
    X = np.resize(normal_rows(FIT_ROWS, COLUMNS), (IN_MEMORY_ROWS, COLUMNS))
    feature_map.fit(X[:FIT_ROWS])
    _, seconds = shortest(lambda: feature_map.transform(X), rounds=ROUNDS)
    return len(X) / seconds / 1e3


def _written(path: Path, rows: int) -> float:
    """Return how many rows of features a second are written without any map."""
    features = mmap.mmap(-1, PIECE)
    features.write(bytes(range(256)) * (PIECE // 256))
    number = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_DIRECT", 0))
    try:
        _, seconds = timed(lambda: _write_again(number, features, 4 * COMPONENTS * rows // PIECE))
    finally:
        os.close(number)
        path.unlink()
    return rows / seconds / 1e3


def _write_again(number: int, content: mmap.mmap, times: int) -> None:
    for _ in range(times):
        os.write(number, content)
    os.fsync(number)


MEASUREMENTS = (file_streams,)

if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
