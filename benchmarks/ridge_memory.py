"""Peak memory of ridge regression on a stream of rows, measured in a fresh process."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import Row, Table, at_most

PROBE = Path(__file__).with_name("ridge_memory_probe.py")
MOST_MEGABYTES, LARGEST_DIFFERENCE = 1500, 1e-8


def streamed_ridge(*, quick: bool) -> Table:
    rows, components = (50_000, 512) if quick else (1_000_000, 2048)
    with tempfile.TemporaryDirectory() as folder:
        streamed, from_stream = _measured("streamed", rows, components, folder)
        at_once, expected = _measured("in one call", rows, components, folder)
    difference = float(np.linalg.norm(from_stream - expected) / np.linalg.norm(expected))
    return Table(
        "Ridge regression on a stream of rows",
        f"{rows} rows, 100 columns, float32, {components} components of PolynomialSketch. The "
        "memory is that of the whole process; fitted in one call it holds all rows. The difference "
        "is that of the coefficients, relative (Euclidean).",
        [
            Row(
                {"rows": "streamed by partial_fit", **streamed, "difference": difference},
                [
                    at_most(streamed["peak MB"], MOST_MEGABYTES),
                    at_most(difference, LARGEST_DIFFERENCE),
                ],
            ),
            Row({"rows": "in one call of fit", **at_once, "difference": 0.0}),
        ],
    )


def _measured(
    way: str, rows: int, components: int, folder: str
) -> tuple[dict[str, float], np.ndarray]:
    """Return seconds and memory, and the coefficients with the intercept behind them."""
    path = Path(folder) / f"{way}.npy"
    command = [sys.executable, str(PROBE), way, str(rows), str(components), str(path)]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return figures, np.load(path)


MEASUREMENTS = (streamed_ridge,)
