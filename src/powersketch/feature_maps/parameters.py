"""Checks of the parameters that the feature maps share: value, allowed range, remedy."""

import math
import numbers
from typing import Any

import numpy as np

from powersketch.native import padded_length

# In shorter vectors, all products that a few features take can vanish.
_SHORTEST_INTERNAL = 16


def integer_at_least(name: str, value: Any, lowest: int, remedy: str) -> int:
    """Return the value as an int, or say why it is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} must be an integer of at least {lowest}; {remedy}.")
    if value < lowest:
        raise ValueError(f"{name}={value!r} must be at least {lowest}; {remedy}.")
    return int(value)


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return the value if it is one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(name) for name in allowed)
        raise ValueError(f"{name}={value!r} is unknown; use one of {names}.")
    return value


def true_or_false(name: str, value: Any) -> bool:
    """Return the value if it is a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} must be True or False.")
    return bool(value)


def internal_length(internal_components: Any, n_components: int) -> int:
    """Return the length of intermediate powers, a power of two that is not below the output."""
    if internal_components is None:
        return max(padded_length(n_components), _SHORTEST_INTERNAL)
    internal = integer_at_least(
        "internal_components",
        internal_components,
        n_components,
        f"it may not be smaller than n_components={n_components}, use None for the default",
    )
    return padded_length(internal)


def positive_number(name: str, value: Any, remedy: str) -> float:
    """Return the value as a float, or say why it is no finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} must be a number above 0; {remedy}.")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name}={value!r} must be finite and above 0; {remedy}.")
    return number
