"""Speed of one chain for many degrees against that of its parts."""

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.data import normal_rows
from benchmarks.report import Row, Table, at_most
from benchmarks.timing import best_seconds, usual_rounds
from powersketch import routines
from powersketch.powers import PowerSketch, Slice
from powersketch.random_streams import RandomStreams
from powersketch.sketches import TensorSRHT

ROWS, LENGTH, HIGHEST_DEGREE = 4096, 1024, 32
LONG_CHAIN = 11  # squarings
LIMIT = 1.5


def all_degrees_against_their_parts(*, quick: bool) -> Table:
    return Table(
        f"All degrees 1 … {HIGHEST_DEGREE} from one chain against its parts",
        f"{ROWS} rows, {LENGTH} features in equal slices, S of length {LENGTH}, float32, one "
        f"thread. The parts are the leaf and {HIGHEST_DEGREE} applications of S to whole "
        f"registers, each as in a chain of {LONG_CHAIN} squarings less one of one squaring, or as "
        "a call of its own, whichever is cheaper.",
        [_degrees_row(columns, rounds=usual_rounds(quick)) for columns in (LENGTH, 4 * LENGTH)],
    )


def _degrees_row(columns: int, *, rounds: int) -> Row:
    X = normal_rows(ROWS, columns)
    whole = Slice(0, LENGTH, 0)
    calls = {
        "all": chain_call(X, equal_slices()),
        "leaf": chain_call(X, {1: whole}),
        "one squaring": chain_call(X, {2: whole}),
        "squarings": chain_call(X, {1 << LONG_CHAIN: whole}),
        "S": single_application(),
    }
    seconds = best_seconds(calls, rounds=rounds)
    in_chain = (seconds["squarings"] - seconds["one squaring"]) / (LONG_CHAIN - 1)
    parts = seconds["leaf"] + HIGHEST_DEGREE * min(in_chain, seconds["S"])
    cells = {
        "columns": columns,
        "all degrees ms": 1e3 * seconds["all"],
        "leaf ms": 1e3 * seconds["leaf"],
        "S in a chain ms": 1e3 * in_chain,
        "S alone ms": 1e3 * seconds["S"],
        "sum of parts ms": 1e3 * parts,
        "ratio": seconds["all"] / parts,
    }
    return Row(cells, [at_most(seconds["all"] / parts, LIMIT)])


def equal_slices() -> dict[int, Slice]:
    """Return different rows of S for every degree, as the feature maps take them."""
    size = LENGTH // HIGHEST_DEGREE
    starts = range(0, LENGTH, size)
    return {degree: Slice(start, size, start) for degree, start in enumerate(starts, start=1)}


def chain_call(X: np.ndarray, outputs: Mapping[int, Slice]) -> Callable[[], bool]:
    """Return a call that writes the features of these degrees into memory it already has."""
    sketch = PowerSketch.draw(
        RandomStreams(0, "benchmark"),
        X.shape[1],
        outputs,
        internal=LENGTH,
        base_sketch="srht",
        preserve_norms=True,
    )
    out = np.zeros((len(X), LENGTH), dtype=X.dtype)
    row_scale, block_scales = np.ones(len(X)), np.ones((len(X), len(outputs)))
    return lambda: sketch.write(X, row_scale, None, block_scales, out, 1)


def single_application() -> Callable[[], np.ndarray]:
    A = normal_rows(ROWS, LENGTH)
    spec = TensorSRHT.draw(RandomStreams(0, "benchmark"), LENGTH, LENGTH).spec
    return lambda: routines.tensor_srht(A, A, spec)


MEASUREMENTS = (all_degrees_against_their_parts,)
