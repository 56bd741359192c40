"""What the environment decides: the implementation in use, and threads in a forked process."""

from __future__ import annotations

import os
import subprocess
import sys

from powersketch import _native

TRANSFORM = """
import hashlib
import numpy as np
import scipy.sparse as sp
from powersketch import PolynomialSketch, _native, routines
from powersketch.kernels import Gaussian

generator = np.random.default_rng(0)
X = generator.random((50, 40))
options = {"n_components": 64, "random_state": 3}
digest = hashlib.sha256()
for rows in (X, sp.csr_array(np.where(X < 0.2, X, 0.0)), generator.normal(size=(50, 200))):
    for arguments in ({"degree": 3, "coef0": 1.0}, {"degree": 7, "expansion": "none"},
                      {"degree": 5, "norm_preserving": False},
                      {"degree": 4, "method": "tensorsketch"}):
        digest.update(PolynomialSketch(**arguments, **options).fit_transform(rows).tobytes())
for kind in (np.float32, np.float64):
    digest.update(Gaussian(gamma=0.5)(generator.normal(size=(60, 9)), dtype=kind).tobytes())
simd = "none" if ".reference." in routines.srht.__module__ else _native.instruction_set()
print(routines.srht.__module__, simd, digest.hexdigest())
"""
UNKNOWN = """
import numpy as np
from powersketch import PolynomialSketch
PolynomialSketch(n_components=4).fit_transform(np.ones((3, 9)))
"""
FORK = """
import multiprocessing
import os
import numpy as np
from powersketch import routines

X = np.random.default_rng(0).normal(size=(200, 64))
TASKS = "/proc/self/task"

def transform(_):
    result = routines.fwht(X, 64, threads=2)
    return result, len(os.listdir(TASKS)) if os.path.isdir(TASKS) else 2

expected, _ = transform(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    results = pool.map(transform, range(4))
assert all(np.array_equal(result, expected) for result, _ in results)
assert all(threads > 1 for _, threads in results), "the child starts threads of its own"
assert np.array_equal(transform(0)[0], expected)
print("survived")
"""

THREADS = """
import os
import numpy as np
from powersketch import routines

X = np.random.default_rng(0).normal(size=(20_000, 64))
expected = routines.fwht(X, 64, threads=1)
TASKS = "/proc/self/task"

def threads_after(rows, threads):
    assert np.array_equal(routines.fwht(X[:rows], 64, threads=threads), expected[:rows])
    return len(os.listdir(TASKS)) if os.path.isdir(TASKS) else 1

before = threads_after(2, 1)
assert threads_after(2, 150) <= before + 1, "two rows are shared by two threads"
most = before + 4 * os.cpu_count() - 1
assert threads_after(20_000, 2_000) <= most, "no more than four threads for every processor"
assert threads_after(20_000, 2**64 - 1) <= most
print("few threads")
"""
NO_THREADS = """
import os
import resource
import numpy as np
from powersketch import routines

X = np.random.default_rng(0).normal(size=(2_000, 64))
expected = routines.fwht(X, 64, threads=1)
if os.path.isfile("/proc/self/statm"):
    with open("/proc/self/statm") as pages:
        size = int(pages.read().split()[0]) * resource.getpagesize()
    # Enough for the result, and less than the stack of a thread.
    resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), resource.RLIM_INFINITY))
for _ in range(3):
    assert np.array_equal(routines.fwht(X, 64, threads=4), expected)
print("without threads")
"""


def run(script: str, simd: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in os.environ if name != "POWERSKETCH_SIMD"}
    if simd is not None:
        environment["POWERSKETCH_SIMD"] = simd
    return subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def output(script: str, simd: str | None = None) -> str:
    result = run(script, simd)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_best_instruction_set_is_the_default() -> None:
    script = "from powersketch import _native; print(_native.instruction_set())"
    assert output(script, "") == _native.instruction_sets()[-1]


def test_the_environment_chooses_the_implementation_but_not_the_bits() -> None:
    plain, plain_set, plain_digest = output(TRANSFORM, "baseline").split()
    numpy, _, numpy_digest = output(TRANSFORM, "numpy").split()
    assert (plain, plain_set) == ("powersketch.routines.compiled", "baseline")
    assert numpy == "powersketch.routines.reference.transforms"
    assert plain_digest == numpy_digest


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    result = run(UNKNOWN, "mmx")
    assert result.returncode != 0
    last_line = result.stderr.strip().splitlines()[-1]
    assert last_line.startswith("ValueError: instruction set 'mmx' is not available")
    for name in _native.instruction_sets():
        assert name in last_line


def test_threads_work_in_a_forked_process_after_the_parent_used_them() -> None:
    assert output(FORK) == "survived"


def test_threads_are_no_more_than_the_work_and_the_processors_need() -> None:
    finished = run(THREADS)
    assert finished.stdout.strip() == "few threads", finished.stderr


def test_work_is_done_where_the_system_gives_no_thread() -> None:
    finished = run(NO_THREADS)
    assert finished.stdout.strip() == "without threads", finished.stderr
