"""Runs that are killed at random moments and resumed: the same bits, and never half an output.

``python -m tests.hostile.killed_streams --kills 10`` does so for every format of outputs, prints
how often a run was killed, and ends with 1 after a failure.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from powersketch import PolynomialSketch
from powersketch.files import read_rows

SUFFIXES = (".npy", ".npz", ".parquet", ".zarr")
# Blocks are small, so that there are many moments to be killed at.
_RUN = """
import sys, numpy as np
from powersketch import PolynomialSketch
from powersketch.files import open_rows, sinks, transforming
transforming._BLOCK_BYTES = sinks._BLOCK_BYTES = 1 << 16
sinks._SECONDS_BETWEEN_NOTES = 0.0
sketch = PolynomialSketch(3, n_components=64, random_state=0).fit(np.load("rows.npy")[:100])
transforming.transform_file(sketch, open_rows("rows.npy"), sys.argv[1], resume=True)
"""
_LONGEST = 0.4  # seconds from the first rows on, with conversions to other formats


def run(
    folder: Path, suffix: str, kills: int, seed: int, longest: float = _LONGEST
) -> tuple[int, str]:
    """Kill runs so many times, then let one end; return how many kills met it, and what failed."""
    X = np.random.default_rng(1).standard_normal((40_000, 8))
    np.save(folder / "rows.npy", X)
    expected = PolynomialSketch(3, n_components=64, random_state=0).fit(X[:100]).transform(X)
    output = folder / f"out{suffix}"
    draws, met = random.Random(seed), 0
    for _ in range(kills):
        if not _killed(output, draws.uniform(0.0, longest)):
            # It was done before: there has to be a whole output, and the next run starts anew.
            problem = _problem(output, expected)
            if problem:
                return met, problem
            subprocess.run(["rm", "-r", str(output)], check=True)
            continue
        met += 1
        if output.exists() and _problem(output, expected):
            return met, "a killed run left a part of the output under its name"
    subprocess.run([sys.executable, "-c", _RUN, output.name], cwd=folder, check=True)
    left = sorted(os.listdir(folder))
    if left != sorted([output.name, "rows.npy"]):
        return met, f"it left {left}"
    return met, _problem(output, expected)


def _killed(output: Path, seconds: float) -> bool:
    """Start a run and kill it so long after it has noted rows; tell whether it was not done."""
    note = output.with_name(f".{output.name}.progress")
    child = subprocess.Popen([sys.executable, "-c", _RUN, output.name], cwd=output.parent)
    before = note.stat().st_mtime_ns if note.exists() else None
    while child.poll() is None:
        if note.exists() and note.stat().st_mtime_ns != before:
            time.sleep(seconds)
            child.send_signal(signal.SIGKILL)
            break
        time.sleep(0.002)
    return child.wait() != 0


def _problem(output: Path, expected: np.ndarray) -> str:
    found = np.asarray(read_rows(output))
    return "" if np.array_equal(found, expected) else "the bits are not those of a whole run"


def main() -> int:
    """Run with the options of the command line, print the counts, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="for every format")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = False
    for suffix in SUFFIXES:
        with tempfile.TemporaryDirectory() as folder:
            met, problem = run(Path(folder), suffix, options.kills, options.seed)
        print(f"{suffix:<10}{met:>4} of {options.kills} kills met a run  {problem or 'same bits'}")
        failed |= bool(problem)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
