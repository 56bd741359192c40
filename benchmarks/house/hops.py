"""How often calls change from one file of the package to another, for the main entry points."""

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import powersketch
from benchmarks.report import Row, Table, at_most
from powersketch import PolynomialSketch, SketchedKernelRidge, accuracy, solve_kernel_system
from powersketch.cli.main import main
from powersketch.kernels import Gaussian

HOME = str(Path(powersketch.__file__).parent)
ROWS, COLUMNS = 200, 50


def changes_of_file(call: Callable[[], Any]) -> tuple[int, int]:
    """Return how often the called functions of the package change files, and among how many."""
    files: list[str] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(HOME) and (not files or files[-1] != file):
            files.append(file)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files) - 1, len(set(files))


def hops(*, quick: bool) -> Table:
    del quick
    return Table(
        "Changes of file",
        f"{ROWS} × {COLUMNS} rows; every call of a function of the package in another file than "
        "the call before it counts.",
        [_row(name, call, limit) for name, (call, limit) in _calls().items()],
    )


def _row(name: str, call: Callable[[], Any], limit: int | None) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()  # imports and caches of the first call are not the walk of the data
        changes, files = changes_of_file(call)
    cells = {"call": name, "changes of file": changes, "files": files}
    return Row(cells, [] if limit is None else [at_most(changes, limit)])


def _calls() -> dict[str, tuple[Callable[[], Any], int | None]]:
    """Return the calls with the most changes that each may make."""
    generator = np.random.default_rng(0)
    X = generator.random((ROWS, COLUMNS))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    sketch = PolynomialSketch(4, n_components=256, random_state=0).fit(X)
    # A number of features asks for a map, where so few rows would take the exact kernel.
    ridge = SketchedKernelRidge("gaussian", n_components=100, alpha=1.0, random_state=0)
    default = SketchedKernelRidge(random_state=0)
    file = Path(tempfile.mkdtemp()) / "rows.npy"
    np.save(file, X)
    return {
        "PolynomialSketch.fit": (lambda: sketch.fit(X), 120),
        "PolynomialSketch.transform": (lambda: sketch.transform(X), 35),
        "SketchedKernelRidge('gaussian', n_components=100, alpha=1).fit": (
            lambda: ridge.fit(X, y),
            600,
        ),
        "SketchedKernelRidge().fit": (lambda: default.fit(X, y), None),
        "solve_kernel_system": (
            lambda: solve_kernel_system(X, y, Gaussian(0.01), alpha=0.1),
            None,
        ),
        "certify": (lambda: accuracy.certify(sketch, X), 300),
        "powersketch compare FILE, one method and size": (lambda: _compare(file), 450),
    }


def _compare(file: Path) -> None:
    page = file.with_suffix(".html")
    options = ["--methods", "power", "--components", "64", "--seeds", "1", "--report", str(page)]
    with contextlib.redirect_stdout(io.StringIO()):
        main(["compare", str(file), *options])


MEASUREMENTS = (hops,)
