"""
Rows that never fit into memory
===============================

A fit on features needs sums over the rows, and sums can be taken block by block. The model of
200,000 rows that stay on disk is the one that a single call would give, to the last digits.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from powersketch import GaussianSketch, SketchedKernelRidge

rows, columns, block = 200_000, 20, 10_000
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, columns + 1))
rng = np.random.default_rng(0)
for start in range(0, rows, block):
    X = rng.normal(size=(block, columns)).astype(np.float32)
    y = np.sin(X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=block)
    stored[start : start + block] = np.column_stack([X, y])
stored.flush()
print(f"{path.stat().st_size / 1e6:.0f} MB on disk")

# %%
# ``fit_batches`` takes any iterator of blocks: slices of a memory map, ``pandas.read_csv`` with
# ``chunksize``, batches of a Parquet file. Each is read once.


def blocks():
    table = np.load(path, mmap_mode="r")
    for start in range(0, rows, block):
        part = table[start : start + block]
        yield part[:, :columns], part[:, columns]


features = GaussianSketch(gamma=0.03, n_components=512, random_state=0)
start = time.perf_counter()
model = SketchedKernelRidge(features=features, alpha=0.1).fit_batches(blocks())
print(f"one pass: {time.perf_counter() - start:.1f} s")

# %%
# ``partial_fit`` learns in steps, and can be asked at any time.

test = np.load(path, mmap_mode="r")[-20_000:]
growing = SketchedKernelRidge(features=features, alpha=0.1)
seen, scores = [], []
for number, (X, y) in enumerate(blocks()):
    if number == 18:
        break
    growing.partial_fit(X, y)
    if number in (0, 1, 2, 4, 8, 17):
        seen.append((number + 1) * block)
        scores.append(growing.score(test[:, :columns], test[:, columns]))

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(seen, scores, "o-")
axes.set(xscale="log", xlabel="rows seen", ylabel="R² on the last 20,000 rows")
axes.set_xticks(seen, [f"{count:,}" for count in seen], rotation=30)
axes.minorticks_off()
axes.grid(alpha=0.3)
plt.show()
folder.cleanup()
