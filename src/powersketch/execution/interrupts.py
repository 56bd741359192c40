"""Long calls into compiled libraries, during which Ctrl-C is still heard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_SECONDS_BETWEEN_LOOKS = 0.1


def interruptible(call: Callable[[], Result]) -> Result:
    """Return what the call returns; an interrupt leaves it behind at once.

    Python handles signals between its own instructions only, and a factorisation is one of them.
    So the call runs in a thread of its own while this one waits, which a signal can end. The
    thread then finishes its work in vain: the call must not write to what others can see.
    """
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="powersketch-interruptible", daemon=True).start()
    # A signal that reaches another thread is seen here only when the wait ends.
    while not done.wait(_SECONDS_BETWEEN_LOOKS):
        pass
    if errors:
        raise errors[0]
    return results[0]
