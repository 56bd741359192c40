"""What a stored model may consist of: classes that say so, and calls that objects remember.

An object is stored by its fields. Tables that are sampled from a seed, or listed from two numbers,
are stored as the call that made them: that is a few bytes, and gives the same bits. Large ones are
made when they are first needed, not when a file is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, overload

_Value = TypeVar("_Value")
_Class = TypeVar("_Class", bound=type)
_Method = TypeVar("_Method", bound=Callable[..., Any])

STORABLE: dict[str, type] = {}
"""The classes of this package whose objects can be stored, by the names that files know."""

_ATTRIBUTE = "_made_by"


def storable(cls: _Class) -> _Class:
    """Let objects of a class be part of stored models; it is a dataclass or an estimator."""
    if STORABLE.setdefault(cls.__name__, cls) is not cls:
        raise TypeError(f"two storable classes are called {cls.__name__}")
    return cls


class Call(NamedTuple):
    """A class method and what it was given."""

    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def remembered(make: _Method) -> _Method:
    """Let what a class method returns remember the call; to be written below ``@classmethod``."""

    @wraps(make)
    def making(cls: type, *arguments: Any, **options: Any) -> Any:
        made = make(cls, *arguments, **options)
        # The objects are frozen; this is no field of theirs.
        object.__setattr__(made, _ATTRIBUTE, Call(make.__name__, arguments, options))
        return made

    making.__dict__["is_remembered"] = True
    return making  # type: ignore[return-value]


def call_of(value: object) -> Call | None:
    """Return the call that made an object, if it remembers one."""
    return getattr(value, _ATTRIBUTE, None)


def remembered_method(cls: type, name: str) -> Callable[..., Any]:
    """Return a class method whose calls are remembered; nothing else of a class can be had."""
    method: Any = getattr(cls, name, None)
    if not getattr(method, "is_remembered", False):
        raise ValueError(f"{cls.__name__} has no way {name!r} to be made")
    made: Callable[..., Any] = method
    return made


class Postponed(Protocol):
    """What stands in the place of an attribute that has not been made yet."""

    is_postponed: bool

    def made(self) -> Any:
        """Return the attribute."""


class Postponable(Generic[_Value]):
    """An attribute of an estimator that a loaded model makes when it is first needed."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Postponable[_Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        attributes = vars(instance)
        if self._name not in attributes:
            raise AttributeError(f"{owner.__name__} has no attribute {self._name!r} yet")
        if getattr(attributes[self._name], "is_postponed", False):
            attributes[self._name] = attributes[self._name].made()
        return attributes[self._name]

    def __set__(self, instance: object, value: _Value) -> None:
        vars(instance)[self._name] = value


def postponable_names(cls: type) -> list[str]:
    """Return the names of the attributes of a class that can be made later."""
    parts = [vars(each).items() for each in cls.__mro__]
    return [name for part in parts for name, value in part if isinstance(value, Postponable)]
