"""What the options of the command line mean."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from powersketch.exceptions import InputError

DEBUG = "--debug"
# Of the program and of every command: :func:`powersketch.cli.main.main` looks for it in all that
# is given, because errors may come before options are understood.
Debug = Annotated[bool, typer.Option(DEBUG, help="Show where errors arise.")]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def listed(text: str) -> list[str]:
    """Return what stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def integer(name: str, text: str) -> int:
    """Return a whole number, or say that it is none."""
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{name} has {text!r}, which is no whole number; allowed are numbers of at least 1, "
            "separated by commas: give for instance 128,512."
        ) from None


def with_numbers(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with gamma as a number, unless it is "scale"."""
    gamma = parameters.get("gamma", "scale")
    if gamma == "scale":
        return parameters
    try:
        return {**parameters, "gamma": float(gamma)}
    except ValueError:
        raise InputError(
            f"gamma={gamma} is neither a number nor scale: give for instance 0.5."
        ) from None


def bytes_of(text: str) -> int:
    """Return a number of bytes from a number with a unit.

    Examples
    --------
    >>> from powersketch.cli.options import bytes_of
    >>> bytes_of("1.5G")
    1610612736
    """
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    number = stripped.rstrip("KMGT")
    unit = stripped[len(number) :]
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise InputError(
            f"budget-memory={text} is no amount of memory: give bytes, or a number with K, M, G or "
            "T, such as 500M."
        ) from None
