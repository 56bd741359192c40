"""Damaged model files: each is refused by name, or loads; nothing is run, and memory stays small.

``python -m tests.hostile.fuzz_models --count 100000`` prints how many were loaded and refused, and
ends with 1 after a failure. Some files are damaged as they are, which the checksum tells; others
get a new checksum afterwards, as a forger would give them. The same seed damages the same files.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
import signal
import sys
import tempfile
import tracemalloc
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
    TablePreparation,
    load,
    save,
)
from powersketch.exceptions import InputError
from tests.hostile.damaged_files import damaged
from tests.hostile.fuzz_readers import HangError, Tally, limited

_HEADER, _COVERED = 64, 32
_ROOM = 64 << 20
_SECONDS = 20.0
_SIGNED = 0.6
_VALUES = [
    *(0, 1, -1, 2, 7, 1 << 20, 1 << 31, 1 << 40, 1 << 62, 10**30, 0.5, -1.5, 1e308),
    *(float("nan"), float("inf"), True, False, None, "", "power", "tree", "ctr", "os.system"),
    *([], {}, [0], {"array": 0}, {"array": 99}, {"tuple": []}, {"dict": [[1, 2]]}),
    *({"dtype": "O"}, {"type": "object"}, {"number": ["<f8", "x"]}, {"slice": [0, 1, None]}),
    *({"class": "builtins.eval", "fields": {}}, {"made": ["SRHT", "apply"], "arguments": []}),
    {"class": "RandomStreams", "fields": {"seed": 1, "path": "x"}},
    {"made": ["SRHT", "draw"], "arguments": [], "options": {}},
    {"objects": [1], "shape": [1 << 40]},
]


def rows() -> np.ndarray:
    """Return the rows that models are fitted on and used with."""
    return np.random.default_rng(0).standard_normal((40, 5))


@cache
def whole_models() -> tuple[bytes, ...]:
    """Return model files of every kind."""
    X = rows()
    y, labels = X.sum(axis=1), np.where(X[:, 0] > 0, "yes", "no")
    table = pandas.DataFrame(X, columns=[*"abcde"]).assign(f=labels)
    prepared = make_pipeline(TablePreparation(), SketchedKernelRidgeClassifier(random_state=0))
    models: list[Any] = [
        *(kind(n_components=16, random_state=0).fit(X) for kind in _MAPS),
        *(PolynomialSketch(5, method=name, n_components=8).fit(X) for name in _METHODS),
        PolynomialSketch(2, n_components=64).fit(X),
        PolynomialSketch(3, n_components=8, base_sketch="osnap", compress_from=16).fit(X),
        GaussianSketch(method="fourier", n_components=8).fit(X),
        make_pipeline(StandardScaler(), PolynomialSketch(3), RidgeClassifier()).fit(X, labels),
        prepared.fit(table, labels),
        SketchedKernelRidge("gaussian", features="sketch", n_components=16).fit(X, y),
        SketchedKernelRidge("gaussian", features="landmarks", n_components=8, alpha=1.0).fit(X, y),
        SketchedKernelRidge("gaussian", features="exact", alpha=1.0).fit(X, y),
    ]
    with tempfile.TemporaryDirectory() as folder:
        return tuple(_saved(model, Path(folder) / "model") for model in models)


_MAPS = (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
)
_METHODS = ("tree", "tensorsketch", "ctr", "adaptive")


def _saved(model: Any, path: Path) -> bytes:
    save(model, path, compact=False)
    return path.read_bytes()


def signed(description: Any, arrays: bytes) -> bytes:
    """Return a file with this description, and a checksum that is right."""
    text = json.dumps(description, separators=(",", ":")).encode()
    header = whole_models()[0][:24] + len(text).to_bytes(8, "little")
    rest = text + bytes(-len(text) % _HEADER) + arrays
    return header + hashlib.sha256(header + rest).digest() + rest


def parts(content: bytes) -> tuple[Any, bytes]:
    """Return the description of a whole file, and the bytes of its arrays."""
    length = int.from_bytes(content[24:32], "little")
    start = _HEADER + length + -length % _HEADER
    return json.loads(content[_HEADER : _HEADER + length]), content[start:]


def _forged(content: bytes, draws: random.Random) -> bytes:
    """Change a few entries of the description or bytes of arrays, and sign the file anew."""
    description, arrays = parts(content)
    for _ in range(draws.choice((1, 1, 1, 2, 4))):
        if arrays and draws.random() < 0.15:
            place = draws.randrange(len(arrays))
            arrays = arrays[:place] + draws.randbytes(1) + arrays[place + 1 :]
        else:
            _change(description, draws)
    return signed(description, arrays)


def _change(node: Any, draws: random.Random) -> None:
    """Change one entry somewhere below a node of the description."""
    while True:
        keys = [*node] if isinstance(node, dict) else [*range(len(node))]
        if not keys:
            return
        key = draws.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and draws.random() < 0.93:
            node = node[key]
            continue
        how = draws.random()
        if how < 0.15:
            del node[key]
        elif how < 0.3 and isinstance(node[key], int):
            node[key] += draws.choice((-1, 1, 100, 1 << 24))
        elif how < 0.4:
            node[key] = copy.deepcopy(node[draws.choice(keys)])
        else:
            node[key] = copy.deepcopy(draws.choice(_VALUES))
        return


def run(count: int, seed: int, folder: Path) -> Tally:
    """Damage so many files; return what became of them."""
    tally = Tally(Counter())
    whole_models()
    with limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            for number in range(count):
                _try_one(f"{seed}/{number}", folder / "damaged.model", tally)
        finally:
            tracemalloc.stop()
    return tally


def _try_one(name: str, path: Path, tally: Tally) -> None:
    draws = random.Random(name)
    whole = draws.choice(whole_models())
    forged = draws.random() < _SIGNED
    content = _forged(whole, draws) if forged else damaged(whole, draws)
    # File systems take care of a file that is cut to nothing and written anew, which takes time.
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    tally.counts["damaged"] += 1
    try:
        outcome, problem = _outcome(path, content, whole, forged=forged)
    except (Exception, HangError) as error:
        outcome, problem = "failed", f"{type(error).__name__}: {error}"
    tally.counts[outcome] += 1
    if problem:
        tally.failures.append(f"{name}: {problem}\n    {content[:600]!r}")


def _outcome(path: Path, content: bytes, whole: bytes, *, forged: bool) -> tuple[str, str]:
    """Return whether the file was loaded or refused, and what was wrong about that."""
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        model = load(path)
    except InputError as error:
        model = None
        if not str(error).startswith(path.name):
            return "failed", f"the file is not named: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    taken = tracemalloc.get_traced_memory()[1] - before
    if taken > 4 * len(content) + _ROOM:
        return "failed", f"loading {len(content)} bytes took {taken}"
    if model is None:
        return "refused", ""
    if not forged and content != whole:
        return "failed", "a damaged file was loaded"
    _use(model)
    return "loaded", ""


def _use(model: Any) -> None:
    """Use a model that may have been forged: errors are in order, crashes are not."""
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        (model.predict if hasattr(model, "predict") else model.transform)(rows())
    except Exception:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def main() -> int:
    """Run with the options of the command line, print the counts, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = run(options.count, options.seed, Path(folder))
    print(", ".join(f"{count} {what}" for what, count in tally.counts.items()))
    for failure in tally.failures[:20]:
        print(failure, file=sys.stderr)
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
