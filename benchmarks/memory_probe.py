"""Transforms rows of one layout in this process and prints the memory it took, as JSON."""

import json
import resource
import sys
from pathlib import Path

import numpy as np
import psutil
import scipy.sparse as sp
from data import sparse_rows

from powersketch import GaussianSketch, PolynomialSketch

COLUMNS, COMPONENTS, BLOCK_ROWS = 1024, 1024, 1000
MAPS = {
    "polynomial": PolynomialSketch(4, n_components=COMPONENTS, random_state=0),
    "Gaussian": GaussianSketch("scale", n_components=COMPONENTS, random_state=0),
}


def main(name: str, layout: str, rows: int) -> None:
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
    print(json.dumps(megabytes))


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


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
