"""Speed of the compiled transforms against the machine: copies of memory and additions."""

import math
from functools import partial

import numpy as np

from benchmarks.data import normal_rows
from benchmarks.report import Row, Table, at_least
from benchmarks.timing import best_seconds, usual_rounds
from powersketch import _native
from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT

HADAMARD_BARS = {"avx2": 30, "avx512": 40}  # percent of the possible additions
LEVEL_2_BYTES = 256 << 10


def srht_against_copying_its_input(*, quick: bool) -> Table:
    cases = ((4096, 4096, 1024, [90]), (64, 1 << 20, 4096, []))
    return Table(
        "SRHT against copying its input",
        "float32, one thread, input larger than the cache, outputs allocated beforehand; the "
        "speed of the copy is 100 %. A copy by blocks of 1 MiB uses regular stores, as the SRHT "
        "does; the bar is for the copy as a whole.",
        [_srht_row(*case, rounds=usual_rounds(quick)) for case in cases],
    )


def _srht_row(count: int, columns: int, size: int, bars: list[float], *, rounds: int) -> Row:
    X = normal_rows(count, columns)
    copy, out = np.zeros_like(X), np.zeros((count, size), dtype=X.dtype)
    spec = SRHT.draw(RandomStreams(0, "benchmark"), columns, size).spec
    signs = spec.signs.astype(X.dtype)
    arguments = (X, signs, spec.indices, spec.padded, spec.scale, out, 1)
    calls = {
        "srht": lambda: _native.srht(*arguments),
        "copy": lambda: np.copyto(copy, X),
        "copy by blocks": partial(_copy_by_blocks, X, copy),
    }
    seconds = best_seconds(calls, rounds=rounds)
    percent = 100 * seconds["copy"] / seconds["srht"]
    cells = {
        "rows": count,
        "columns": columns,
        "size": size,
        "SRHT ns per element": 1e9 * seconds["srht"] / X.size,
        "copy ns per element": 1e9 * seconds["copy"] / X.size,
        "% of copy speed": percent,
        "% of copy by blocks": 100 * seconds["copy by blocks"] / seconds["srht"],
    }
    return Row(cells, [at_least(percent, bar) for bar in bars])


def _copy_by_blocks(X: np.ndarray, copy: np.ndarray) -> None:
    """Copy 1 MiB at a time: a larger copy may use stores that bypass the cache."""
    rows = max(1, (1 << 20) // X[0].nbytes)
    for start in range(0, len(X), rows):
        np.copyto(copy[start : start + rows], X[start : start + rows])


def hadamard_transform_against_additions(*, quick: bool) -> Table:
    table = Table(
        "Hadamard transform in the second-level cache against the processor's additions",
        "float32, one thread, length · log2(length) additions per row.",
    )
    chosen = _native.instruction_set()
    try:
        for name in _native.instruction_sets():
            _native.select_instruction_set(name)
            table.rows.extend(_hadamard_rows(name, rounds=usual_rounds(quick)))
    finally:
        _native.select_instruction_set(chosen)
    return table


def _hadamard_rows(instruction_set: str, *, rounds: int) -> list[Row]:
    inputs = [normal_rows(_rows_in_cache(1 << k), 1 << k) for k in range(8, 15)]
    calls = {f"{X.shape}": partial(_native.fwht, X, np.zeros_like(X), 1) for X in inputs}
    peaks = []
    calls["peak"] = lambda: peaks.append(_native.add_peak())
    seconds = best_seconds(calls, rounds=rounds)
    return [_hadamard_row(instruction_set, X, seconds[f"{X.shape}"], max(peaks)) for X in inputs]


def _rows_in_cache(length: int) -> int:
    bytes_per_row = 2 * length * np.float32().itemsize  # input and output
    return max(16, LEVEL_2_BYTES // bytes_per_row)


def _hadamard_row(instruction_set: str, X: np.ndarray, seconds: float, peak: float) -> Row:
    rows, length = X.shape
    percent = 100 * X.size * math.log2(length) / seconds / peak
    cells = {
        "instruction set": instruction_set,
        "length": length,
        "rows": rows,
        "ns per element": 1e9 * seconds / X.size,
        "peak, 10⁹ additions/s": peak / 1e9,
        "% of peak": percent,
    }
    bar = HADAMARD_BARS.get(instruction_set)
    return Row(cells, [at_least(percent, bar)] if bar else [])


MEASUREMENTS = (srht_against_copying_its_input, hadamard_transform_against_additions)
