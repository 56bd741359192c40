"""Hashes of coordinates: where scatter sketches and TensorSketch send them, and with which sign."""

import numpy as np
from numpy.typing import NDArray


def counter_hash(key: int, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash counters to 64 bits: random access to a stream that is never stored.

    It is word `counter` of the generator splitmix64 [SLF14] whose state starts at `key`.

    >>> [hex(word) for word in counter_hash(0, np.arange(2, dtype=np.uint64))]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    # In place on an array, because NumPy warns of wrap-around on scalars.
    mixed = np.array(counters)
    mixed += np.uint64(1)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(key)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hashed_table(key: int, columns: int, size: int, sparsity: int) -> NDArray[np.int32]:
    """Return 2 · bucket + negative for every copy of every coordinate, one copy in each band.

    Band b is the outputs ⌊b · size / sparsity⌋ up to the next band's first; copy b of coordinate j
    takes the hash of j · sparsity + b: its upper half chooses the bucket, its last bit the sign.
    """
    hashes = counter_hash(key, np.arange(columns * sparsity, dtype=np.uint64))
    edges = np.arange(sparsity + 1, dtype=np.uint64) * np.uint64(size) // np.uint64(sparsity)
    low, width = np.tile(edges[:-1], columns), np.tile(np.diff(edges), columns)
    buckets = low + ((hashes >> np.uint64(32)) * width >> np.uint64(32))
    targets = np.uint64(2) * buckets + (hashes & np.uint64(1))
    table: NDArray[np.int32] = targets.astype(np.int32).reshape(columns, sparsity)
    return table
