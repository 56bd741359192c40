"""Checks of the parameters that users give: value, allowed range, remedy."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from powersketch.arrays import LARGEST_LENGTH
from powersketch.exceptions import InputError, InputTypeError

Gamma: TypeAlias = Any
"""A positive number; "scale" or "median", which a kernel's `resolve` turns into one; or "auto"."""

USUAL_SIZE = "100 is the default, and 'auto' together with eps chooses it"
"""What to say to a number of components that is not allowed."""

_SMALLEST_TOLERANCE = 1e-15
_LARGEST_ALPHA = 1e300
_GAMMA_RULES = ("scale", "median", "auto")


def checked_integer(
    name: str, value: object, lowest: int, highest: int | None = None, *, remedy: str = ""
) -> int:
    """Return the value as an int, or say why it is not allowed."""
    allowed = f"an integer of at least {lowest}"
    if highest is not None:
        allowed = f"an integer from {lowest} to {highest}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputTypeError(
            f"{name}={value!r} is a {type(value).__name__}; "
            f"allowed is {allowed}: {remedy or 'pass an int'}."
        )
    number = int(value)
    if number < lowest or (highest is not None and number > highest):
        raise InputError(f"{name}={number} is out of range; choose {allowed}{_ending(remedy)}.")
    return number


def checked_positive(name: str, value: object, *, remedy: str = "") -> float:
    """Return the value as a float, or say why it is not finite and positive."""
    number = _checked_real(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(
            f"{name}={number} is out of range; choose a finite number above 0{_ending(remedy)}."
        )
    return number


def checked_fraction(name: str, value: object, *, remedy: str) -> float:
    """Return the value as a float, or say why it is not strictly between 0 and 1."""
    number = checked_positive(name, value, remedy=remedy)
    if number >= 1.0:
        raise InputError(
            f"{name}={number} is out of range; choose a number above 0 and below 1: {remedy}."
        )
    return number


def checked_size(
    n_components: Any, eps: Any, smallest: int = 1, why: str = USUAL_SIZE
) -> int | None:
    """Return the number of components, None for "auto", or say what is wrong with the pair."""
    if isinstance(n_components, str) and n_components == "auto":
        if eps is None:
            raise InputError(
                "n_components='auto' needs the relative error to keep, a number between 0 and 1: "
                "pass for instance eps=0.05, or give n_components as an integer."
            )
        checked_fraction("eps", eps, remedy="0.05 keeps Z Zᵀ within 5 % of K")
        return None
    size = checked_integer("n_components", n_components, smallest, remedy=why)
    if size > LARGEST_LENGTH:
        checked_integer("n_components", size, smallest, LARGEST_LENGTH, remedy=why)
    if eps is not None:
        raise InputError(
            f"eps={eps!r} has no meaning with n_components={size}; "
            "pass n_components='auto' to have the number chosen for eps, or leave eps out."
        )
    return size


def checked_tolerance(tol: object) -> float:
    """Return the relative residual to reach, or say why no solver can reach it."""
    value = checked_positive("tol", tol, remedy="1e-6 is the default")
    if not _SMALLEST_TOLERANCE <= value < 1.0:
        raise InputError(
            f"tol={value} is out of range; choose a relative residual from {_SMALLEST_TOLERANCE}, "
            "the least that double precision allows, to below 1."
        )
    return value


def checked_non_negative(
    name: str,
    value: object,
    *,
    reason: str = "because with a negative one the kernel is not positive definite",
) -> float:
    """Return the value as a float, or say why it may not be negative."""
    number = _checked_real(name, value)
    if not (math.isfinite(number) and number >= 0.0):
        raise InputError(
            f"{name}={number} is out of range; choose a finite number of at least 0, {reason}."
        )
    return number


def checked_alpha(alpha: object) -> float:
    """Return what is added to the diagonal, or say why it may be neither negative nor huge."""
    value = checked_non_negative(
        "alpha", alpha, reason="because K + alpha I has to be positive definite"
    )
    if value > _LARGEST_ALPHA:
        raise InputError(
            f"alpha={value:g} is out of range; choose at most {_LARGEST_ALPHA:g}, as sums of it "
            "overflow: the solution is zero for far smaller ones."
        )
    return value


def checked_truth(name: str, value: object) -> bool:
    """Return the value if it is a truth value, be it Python's or NumPy's."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(
            f"{name}={value!r} is a {type(value).__name__}; "
            "allowed are True and False: pass a bool."
        )
    return bool(value)


def checked_verbose(verbose: object) -> int:
    """Return how much progress is to be reported: a truth value, or an integer of at least 0."""
    if isinstance(verbose, bool | np.bool_):
        return int(verbose)
    return checked_integer("verbose", verbose, 0, remedy="0 is silent, 1 reports progress")


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return the value if it is one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(repr(name) for name in allowed)
        raise InputError(f"{name}={value!r} is unknown; use one of {names}.")
    return value


def checked_gamma(gamma: object) -> Gamma:
    """Return the name of a rule, or a positive number as a float; refuse everything else."""
    if isinstance(gamma, str):
        return one_of("gamma", gamma, _GAMMA_RULES)
    return checked_positive("gamma", gamma)


def check_parameter_names(kernel: str, params: Iterable[str], allowed: Iterable[str]) -> None:
    """Refuse parameters that a kernel does not have."""
    for name in params:
        if name not in allowed:
            raise InputError(
                f"the {kernel} kernel has no {name}; its parameters are "
                f"{', '.join(allowed) or 'none'}: leave {name} out, or choose another kernel."
            )


def refuse_unused(estimator: Any, unused: Mapping[str, str]) -> None:
    """Refuse options of an estimator that were changed although nothing would come of it.

    `unused` says for the name of every such option why it has no effect, as the end of a sentence.
    This is the one rule for all estimators: what has no effect is refused, never ignored.
    """
    defaults = inspect.signature(type(estimator).__init__).parameters
    for name, why in unused.items():
        refuse_unless_default(name, getattr(estimator, name), defaults[name].default, why)


def refuse_unless_default(name: str, value: object, default: object, why: str) -> None:
    """Refuse a value other than the default: the option has no effect, for the reason given."""
    if value is default or (np.isscalar(value) and bool(value == default)):
        return
    raise InputError(f"{name}={value!r} has no effect {why}: leave it at {default!r}.")


def _ending(remedy: str) -> str:
    return f": {remedy}" if remedy else ""


def _checked_real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(
            f"{name}={value!r} is a {type(value).__name__}; "
            "allowed is a finite real number: pass a float."
        )
    return float(value)
