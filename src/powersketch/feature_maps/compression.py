"""The parameters of a sketch that is compressed to fewer features."""

from __future__ import annotations

from typing import Any

from powersketch.exceptions import InputError
from powersketch.parameters import checked_integer, one_of

COMPRESSIONS = ("none", "principal")
_INNER_FACTOR = 4


def check_compression(
    compression: Any, inner_components: Any, n_components: Any, internal_components: int | None
) -> None:
    """Refuse sizes of the first stage that are too small, or that have no meaning.

    The other two numbers of components have been checked before.
    """
    if one_of("compression", compression, COMPRESSIONS) == "none":
        return
    if n_components == "auto":
        raise InputError(
            f"compression={compression!r} needs n_components as an integer, not 'auto': pass a "
            "number, or compression='none' to have it chosen for eps."
        )
    inner = inner_size(inner_components, n_components)
    inner = checked_integer(
        "inner_components",
        inner,
        n_components,
        remedy=f"it may not be smaller than n_components={n_components}, "
        f"None is {_INNER_FACTOR} times as many",
    )
    if internal_components is not None and internal_components < inner:
        raise InputError(
            f"internal_components={internal_components} is smaller than the {inner} inner "
            f"components; choose at least {inner}, or None for the default."
        )


def inner_size(inner_components: int | None, size: int) -> int:
    """Return how many features the first stage has."""
    return _INNER_FACTOR * size if inner_components is None else inner_components
