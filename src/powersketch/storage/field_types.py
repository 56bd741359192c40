"""Whether the parts of a loaded object are what its class says: checked by its annotations."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from powersketch.storage.classes import name_of

# What every fitted estimator may have; classes say more by annotations.
_OF_ALL_ESTIMATORS = {"n_features_in_": int, "feature_names_in_": NDArray[np.object_]}


def check_part(cls: type, name: str, value: Any) -> None:
    """Refuse a field or an attribute whose value is not of the type that its class says."""
    hint = _hints(cls).get(name, Any)
    if not _fits(value, hint):
        wanted = hint.__name__ if isinstance(hint, type) else str(hint)
        raise ValueError(f"{cls.__name__}.{name} is a {type(value).__name__}, and no {wanted}")


@cache
def _hints(cls: type) -> dict[str, Any]:
    if not cls.__module__.startswith("powersketch."):
        return _OF_ALL_ESTIMATORS
    return ({} if dataclasses.is_dataclass(cls) else _OF_ALL_ESTIMATORS) | get_type_hints(cls)


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin is ClassVar:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if hint in _NUMBERS:
        return _is_number(value, hint)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _has_type(value, *get_args(arguments[1]))
    if origin is tuple:
        return isinstance(value, tuple) and _all_fit(value, arguments)
    if origin is list:
        return isinstance(value, list) and all(_fits(part, arguments[0]) for part in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            _fits(key, arguments[0]) and _fits(part, arguments[1]) for key, part in value.items()
        )
    if getattr(hint, "_is_protocol", False):
        # What a protocol asks for cannot be looked up; but it is an object of the fixed list.
        return name_of(type(value)) is not None
    return isinstance(value, origin or hint)


_NUMBERS: dict[Any, Any] = {bool: (bool, np.bool_), int: Integral, float: Real}


def _is_number(value: Any, hint: Any) -> bool:
    is_truth = isinstance(value, _NUMBERS[bool])
    return is_truth if hint is bool else isinstance(value, _NUMBERS[hint]) and not is_truth


def _has_type(array: NDArray[Any], scalar: Any) -> bool:
    if scalar is Any:
        return True
    kinds = get_args(scalar) or (scalar,)
    return any(np.issubdtype(array.dtype, each) for each in kinds)


def _all_fit(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(_fits(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(map(_fits, values, hints))
