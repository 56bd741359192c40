"""Descriptions of options that several estimators share: written once, filled in where used."""

from __future__ import annotations

import re
from typing import TypeVar

_Documented = TypeVar("_Documented")
_PLACE = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)

OPTIONS = {
    "random_state": """\
random_state : int, RandomState instance or None, default=None
    Seed of all random numbers; the same seed gives the same bits on every machine.""",
    "n_jobs": """\
n_jobs : int or None, default=None
    Number of threads, with scikit-learn's meaning: None is one, -1 all processors.""",
    "verbose": """\
verbose : int, default=0
    Whether to report progress on standard error.""",
}
"""From the name of an option to its entry in a section "Parameters" of a docstring."""


def documented(described: _Documented) -> _Documented:
    """Fill the shared options into a docstring: a line ``%(name)s`` becomes the option's entry."""

    def entry(place: re.Match[str]) -> str:
        return "\n".join(place[1] + line for line in OPTIONS[place[2]].split("\n"))

    if described.__doc__ is not None:
        described.__doc__ = _PLACE.sub(entry, described.__doc__)
    return described
