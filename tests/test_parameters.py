"""Checks of parameters: what is allowed comes back as a plain number, anything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from powersketch.exceptions import InputError, InputTypeError
from powersketch.parameters import (
    checked_alpha,
    checked_fraction,
    checked_integer,
    checked_non_negative,
    checked_positive,
    checked_tolerance,
    checked_truth,
    checked_verbose,
    one_of,
    refuse_unless_default,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (checked_integer("n", np.int32(3), 1, 3), 3),
        (checked_positive("gamma", np.float32(0.5)), 0.5),
        (checked_fraction("eps", 0.25, remedy="0.1 is usual"), 0.25),
        (checked_tolerance(1e-15), 1e-15),
        (checked_non_negative("coef0", 0), 0.0),
        (checked_alpha(1e300), 1e300),
        (checked_truth("centre", np.True_), True),
        (checked_verbose(np.True_), 1),
        (one_of("method", "cg", ("cg", "gradient")), "cg"),
    ],
)
def test_allowed_values_come_back_in_pythons_types(value: Any, expected: Any) -> None:
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: checked_integer("n", True, 1), InputTypeError, "n=True is a bool"),
        (lambda: checked_integer("n", 2.0, 1), InputTypeError, "n=2.0 is a float"),
        (lambda: checked_integer("n", 0, 1), InputError, "n=0 .* an integer of at least 1"),
        (lambda: checked_integer("n", 9, 1, 5), InputError, "n=9 .* an integer from 1 to 5"),
        (lambda: checked_positive("gamma", 0.0), InputError, "gamma=0.0 .* above 0"),
        (lambda: checked_positive("gamma", "1"), InputTypeError, "gamma='1' is a str"),
        (lambda: checked_fraction("eps", 1.0, remedy="try 0.1"), InputError, "below 1: try 0.1"),
        (lambda: checked_tolerance(1e-16), InputError, "tol=1e-16 .* from 1e-15"),
        (lambda: checked_non_negative("coef0", np.nan), InputError, "coef0=nan is out of range"),
        (lambda: checked_alpha(-1.0), InputError, r"alpha=-1.0 .* positive definite"),
        (lambda: checked_alpha(1e301), InputError, r"alpha=1e\+301 .* at most 1e\+300"),
        (lambda: checked_truth("centre", 1), InputTypeError, "centre=1 is a int"),
        (lambda: checked_verbose(-1), InputError, "verbose=-1 .* 0 is silent"),
        (lambda: one_of("method", "lu", ("cg",)), InputError, "method='lu' .* one of 'cg'"),
        (
            lambda: refuse_unless_default("tail", 3, None, "here"),
            InputError,
            "tail=3 has no effect",
        ),
    ],
)
def test_anything_else_is_refused(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("value", [None, 0.5, np.float64(0.5)])
def test_the_default_is_not_refused(value: Any) -> None:
    refuse_unless_default("eps", value, None if value is None else 0.5, "here")
