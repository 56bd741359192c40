"""How a case ends: the promise held, the input was refused with a clear error, or it failed."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sklearn
from numpy.linalg import LinAlgError

import powersketch

HELD, REFUSED, FAILED = "held", "refused", "failed"
_VALUE = re.compile(r"\d|'|NaN|infinity|sparse|dtype")
_REMEDY = re.compile(r"[;:.] ")
_SKLEARN = str(Path(sklearn.__file__).parent)
_PACKAGE = str(Path(powersketch.__file__).parent)


@dataclass(frozen=True)
class Outcome:
    """What became of a case, and why."""

    verdict: str
    reason: str = ""


class BrokenPromise(Exception):  # noqa: N818
    """The library did something else than it promises; raised by the checks."""


def demand(truth: object, reason: str) -> None:
    """Raise unless what is promised is true."""
    if not truth:
        raise BrokenPromise(reason)


def outcome_of(check: Callable[[], object], *, refusal: str = "allowed") -> Outcome:
    """Run a check and judge how it ended; `refusal` is "allowed", "wrong" or "expected"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = _ended(check, refusal)
    numerical = [warning for warning in caught if issubclass(warning.category, RuntimeWarning)]
    if numerical and outcome.verdict != FAILED:
        first = numerical[0]
        place = f"{Path(first.filename).name}:{first.lineno}"
        return Outcome(FAILED, f"{first.category.__name__}: {first.message} ({place})")
    return outcome


def is_clear_refusal(error: BaseException) -> bool:
    """Tell whether an error is one that the user can act on.

    It is one of the library's own, with a value and a remedy, or one of scikit-learn's validation.
    A LinAlgError of the library's own counts, too: some systems are singular.
    """
    if not isinstance(error, ValueError | TypeError):
        return False
    message, origin = str(error), traceback.extract_tb(error.__traceback__)[-1].filename
    own_class = type(error).__module__.startswith("powersketch.")
    if own_class or (isinstance(error, LinAlgError) and origin.startswith(_PACKAGE)):
        return bool(_VALUE.search(message) and _REMEDY.search(message))
    return origin.startswith(_SKLEARN)


def _ended(check: Callable[[], object], refusal: str) -> Outcome:
    try:
        check()
    except BrokenPromise as broken:
        return Outcome(FAILED, str(broken))
    except Exception as error:
        return _judged(error, refusal)
    return Outcome(FAILED, "was accepted") if refusal == "expected" else Outcome(HELD)


def _judged(error: Exception, refusal: str) -> Outcome:
    told = f"{type(error).__name__}: {_first_line(error)}"
    if not is_clear_refusal(error):
        return Outcome(FAILED, f"{told} ({_place(error)})")
    if refusal == "wrong":
        return Outcome(FAILED, f"ordinary rows were refused: {told}")
    return Outcome(HELD if refusal == "expected" else REFUSED, told)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:160]


def _place(error: Exception) -> str:
    """Return the innermost line of the library on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_PACKAGE)] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"
