"""Peak memory of a transform above its input, each measured in a fresh process."""

import resource
import sys
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp

from benchmarks.data import sparse_rows
from benchmarks.report import Row, Table, at_most, from_fresh_process, print_figures
from powersketch import GaussianSketch, PolynomialSketch

LAYOUTS = ("C order", "Fortran order", "CSR, 5 % non-zero")
COLUMNS, COMPONENTS, BLOCK_ROWS = 1024, 1024, 1000
MAPS = {
    "polynomial": PolynomialSketch(4, n_components=COMPONENTS, random_state=0),
    "Gaussian": GaussianSketch("scale", n_components=COMPONENTS, random_state=0),
}


def transform_memory(*, quick: bool) -> Table:
    rows = 10_000 if quick else 50_000
    return Table(
        "Peak memory of transform above its input",
        f"{rows} rows, 1024 columns, 1024 components, float32; the polynomial's degree is 4, "
        "the Gaussian's gamma 'scale'. The limit is 1.3 × output + 64 MB.",
        [_measured_row(name, layout, rows) for name in MAPS for layout in LAYOUTS],
    )


def _measured_row(name: str, layout: str, rows: int) -> Row:
    megabytes = from_fresh_process(__spec__.name, name, layout, rows)
    limit = 1.3 * megabytes["output MB"] + 64
    peak = megabytes["peak above input MB"]
    return Row({"kernel": name, "input": layout, **megabytes}, [at_most(peak, round(limit, 1))])


def measure(name: str, layout: str, rows: int) -> None:
    X = input_rows(layout, rows)
    sketch = MAPS[name].fit(X[:512])
    sketch.transform(X[:64])
    before = psutil.Process().memory_info().rss
    Z = sketch.transform(X)
    megabytes = {
        "input MB": (X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes) / 1e6,
        "output MB": Z.nbytes / 1e6,
        "peak above input MB": (peak_bytes() - before) / 1e6,
    }
    print_figures(megabytes)


def input_rows(layout: str, rows: int) -> np.ndarray | sp.csr_matrix:
    """Return random rows made block by block: a larger temporary array would hide the peak."""
    if layout.startswith("CSR"):
        blocks = [
            sparse_rows(BLOCK_ROWS, COLUMNS, 0.05, seed) for seed in range(rows // BLOCK_ROWS)
        ]
        return sp.vstack(blocks, format="csr")
    generator = np.random.default_rng(0)
    X = np.empty((rows, COLUMNS), dtype=np.float32, order=layout[0])
    for start in range(0, rows, BLOCK_ROWS):
        X[start : start + BLOCK_ROWS] = generator.random((BLOCK_ROWS, COLUMNS), dtype=np.float32)
    X /= np.float32(np.sqrt(COLUMNS))
    return X


def peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    status = Path("/proc/self/status")
    # On Linux ru_maxrss starts at the size of the parent process; elsewhere it is in bytes.
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


MEASUREMENTS = (transform_memory,)

if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
