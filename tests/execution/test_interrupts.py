"""A long call ends for its caller when the interrupt comes."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from powersketch.execution import interruptible


def test_the_result_is_that_of_the_call() -> None:
    assert interruptible(lambda: 42) == 42


def test_errors_reach_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_an_interrupt_ends_the_wait() -> None:
    never = threading.Event()
    interrupt = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    started = time.monotonic()
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: never.wait(20.0))
    assert time.monotonic() - started < 10.0
    never.set()
