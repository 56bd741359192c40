"""Ctrl-C ends a solve soon and leaves what was passed in as it was."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from powersketch.kernels import Gaussian, NeuralTangent
from powersketch.linalg import KernelOperator, conjugate_gradients, preconditioned_gradient
from tests.linalg.systems import rows, vectors

_N = 1500


def _seconds_until_interrupted(call: Callable[[], Any], delay: float) -> float:
    interrupt = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
    started = time.monotonic()
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    interrupt.join()
    return time.monotonic() - started


@pytest.mark.parametrize(("budget", "jobs"), [(None, None), (0, None), (0, 2)])
def test_conjugate_gradients(budget: int | None, jobs: int | None) -> None:
    X, b = rows(_N, 2), vectors(_N, 8)
    operator = KernelOperator(Gaussian(), X, 1e-10, memory_budget=budget, n_jobs=jobs)
    seconds = _seconds_until_interrupted(
        lambda: conjugate_gradients(operator, b, tol=1e-14, max_iterations=10**6), 0.3
    )
    assert seconds < 20.0
    np.testing.assert_array_equal(X, rows(_N, 2))
    np.testing.assert_array_equal(b, vectors(_N, 8))
    # What was interrupted can be used again.
    assert np.isfinite(operator @ b).all()


def test_gradient() -> None:
    operator = KernelOperator(Gaussian(), rows(_N, 2), 1e-10)
    b = vectors(_N, 8)
    seconds = _seconds_until_interrupted(
        lambda: preconditioned_gradient(operator, b, np.eye(_N), tol=1e-14, max_iterations=10**6),
        0.3,
    )
    assert seconds < 20.0
    np.testing.assert_array_equal(b, vectors(_N, 8))


def test_the_computation_of_the_matrix() -> None:
    operator = KernelOperator(NeuralTangent(depth=5), rows(6000, 50), memory_budget=8 * 6000**2)
    seconds = _seconds_until_interrupted(lambda: operator.matrix, 0.1)
    assert seconds < 20.0
