"""Run a check in a child process: a crash, or work without end, is then one failed case."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable

from tests.hostile.outcomes import FAILED, Outcome

# A bound of work, not of speed: what is allowed takes a tenth of it.
_PROCESSOR_SECONDS = 10
_BYTES = 6 << 30


def in_child(check: Callable[[], Outcome]) -> Outcome:
    """Return what the check returns, or that the process died."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forks beside threads; the child calls nothing that waits for one.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer(check, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if answer:
        return Outcome(*json.loads(answer))
    if os.WIFSIGNALED(status):
        return Outcome(FAILED, f"the process died of {signal.Signals(os.WTERMSIG(status)).name}")
    return Outcome(FAILED, f"the process ended with code {os.WEXITSTATUS(status)}")


def _answer(check: Callable[[], Outcome], writing: int) -> None:
    """Run the check with bounded means, write the outcome, and end the process."""
    try:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stderr__.fileno())  # type: ignore[union-attr]
        used = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = used + _PROCESSOR_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        outcome = check()
        os.write(writing, json.dumps([outcome.verdict, outcome.reason]).encode())
    finally:
        os._exit(0)
