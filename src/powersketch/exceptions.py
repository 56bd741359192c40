"""The errors and warnings of the library, and a way to warn that points at the user's own line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

# Packages whose frames are passed over: the last two wrap `transform`, and call `fit` in pipelines
# and searches.
_PASSED_OVER = {"powersketch", "sklearn", "joblib"}


class InputError(ValueError):
    """What was given cannot be used; the message says why and what can."""


class InputTypeError(TypeError):
    """What was given is of the wrong type; the message says which one is right."""


class ClusterError(RuntimeError):
    """Machines that were to compute are lost, or do not fit together; nothing was changed."""


class OutlierWarning(UserWarning):
    """A few rows are so far from all others that they would decide everything.

    The message names them, and says whether they were kept out of choices or spoil the result.
    """


class FarRowWarning(OutlierWarning):
    """A few rows are absurdly far from all others."""


class RangeWarning(UserWarning):
    """Rows are so unlike those given to `fit` that their features are less accurate."""


_HELD_BACK: ContextVar[tuple[type[Warning], list[str] | None] | None] = ContextVar(
    "held", default=None
)


@contextmanager
def held_back(category: type[Warning], *, wanted: bool = True) -> Iterator[list[str]]:
    """Collect the messages of a category in a list, for a caller who may know more about them.

    If they are not wanted, what takes time to find out is not looked for. Unlike filters of
    warnings, it does nothing to other threads.
    """
    messages: list[str] = []
    token = _HELD_BACK.set((category, messages if wanted else None))
    try:
        yield messages
    finally:
        _HELD_BACK.reset(token)


def is_wanted(category: type[Warning]) -> bool:
    """Tell whether anybody wants to know what messages of a category say."""
    held = _HELD_BACK.get()
    return held is None or held[1] is not None or not issubclass(category, held[0])


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the library, however deep inside it the reason was found."""
    held = _HELD_BACK.get()
    if held is not None and issubclass(category, held[0]):
        if held[1] is not None:
            held[1].append(message)
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _package_of(frame) in _PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_of_blocks(messages: Sequence[str], category: type[Warning]) -> None:
    """Pass on what was said of blocks of rows: once, and not for every block."""
    if messages:
        more = len(messages) - 1
        also = f" The same is true of {more} other blocks of rows." if more else ""
        warn_user(f"{messages[0]}{also}", category)


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
