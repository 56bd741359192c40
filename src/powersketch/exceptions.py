"""The errors and warnings of the library, and a way to warn that points at the user's own line."""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

# Found without being loaded: the command line is to show its help at once.
_SCIKIT_LEARN = getattr(find_spec("sklearn"), "origin", None) or __file__
_PASSED_OVER = tuple(str(Path(package).parent) + "/" for package in (__file__, _SCIKIT_LEARN))


class InputError(ValueError):
    """What was given cannot be used; the message says why and what can."""


class InputTypeError(TypeError):
    """What was given is of the wrong type; the message says which one is right."""


class OutlierWarning(UserWarning):
    """A few rows are so far from all others that they were left out of every choice."""


class RangeWarning(UserWarning):
    """Rows lie so far outside those seen by `fit` that their features are less accurate."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the library, however deep inside it the reason was found.

    Frames of scikit-learn are passed over as well: it wraps `transform` and calls `fit` in
    pipelines and searches.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PASSED_OVER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
