"""Every public name has a page, and every parameter is described in its docstring."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import powersketch
from docs.extensions.public_names import GROUPS, SKIPPED_BASES, public_objects

OBJECTS = public_objects()
MODULES = sorted({group.module for group in GROUPS})
# Of the others, only results are public: their doors serve the command line as well.
TOOLBOXES = [
    "powersketch",
    *(f"powersketch.{name}" for name in ("accuracy", "kernel_ridge", "kernels", "linalg")),
]
_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]*?)(?: :.*)?$", re.MULTILINE)


def described(value: Any) -> list[str]:
    """Return the names in the section "Parameters" of a docstring."""
    section = _SECTION.search(inspect.getdoc(value) or "")
    entries = _ENTRY.findall(section[1]) if section else []
    return [name.strip(" *") for entry in entries for name in entry.split(",")]


def accepted(function: Any) -> list[str]:
    names = list(inspect.signature(function).parameters)
    return [name for name in names if name not in ("self", "cls")]


def methods(path: str) -> Iterator[tuple[str, Any]]:
    """Yield the public methods that a class has from this package."""
    for name, value in inspect.getmembers(OBJECTS[path], callable):
        own = (getattr(value, "__module__", None) or "").startswith("powersketch")
        if own and not name.startswith("_") and not inspect.isclass(value):
            yield f"{path}.{name}", value


METHODS = dict(
    method for path, value in OBJECTS.items() if inspect.isclass(value) for method in methods(path)
)
TAKES_ARGUMENTS = [
    path
    for path, value in OBJECTS.items()
    if not (inspect.isclass(value) and issubclass(value, BaseException)) and accepted(value)
]


def test_every_name_of_the_package_has_a_page() -> None:
    """Modules are pages of their members, the version is no page."""
    names = {f"powersketch.{name}" for name in powersketch.__all__} - {"powersketch.__version__"}
    assert names <= {*OBJECTS, *MODULES}


@pytest.mark.parametrize("module", TOOLBOXES)
def test_what_a_public_module_shows_by_an_example_has_a_page(module: str) -> None:
    """A docstring with an example is written for users."""
    exported = importlib.import_module(module)
    shown = [
        name
        for name in getattr(exported, "__all__", ())
        if "\n>>> " in (inspect.getdoc(getattr(exported, name)) or "")
        and callable(getattr(exported, name))
    ]
    pages = {value.__name__ for value in OBJECTS.values()}
    assert set(shown) <= pages


@pytest.mark.parametrize("path", TAKES_ARGUMENTS)
def test_every_parameter_is_described(path: str) -> None:
    value, base = OBJECTS[path], inspect.getdoc(OBJECTS[path]) or ""
    names = described(value)
    if inspect.isclass(value) and not names:  # results say what they hold as attributes
        names = re.findall(r"^(\w[\w, ]*) : ", base, re.MULTILINE)
        names = [name for entry in names for name in entry.split(", ")]
        assert set(accepted(value)) <= set(names)
        return
    assert sorted(names) == sorted(accepted(value))


@pytest.mark.parametrize("path", METHODS)
def test_methods_describe_their_parameters_too(path: str) -> None:
    names = described(METHODS[path])
    assert not names or sorted(names) == sorted(accepted(METHODS[path]))
    assert inspect.getdoc(METHODS[path])


def test_classes_of_others_are_known_by_name() -> None:
    """A name that no class has would bring pages of others into the site."""
    known = {base.__name__ for value in OBJECTS.values() if inspect.isclass(value)
             for base in value.__mro__}  # fmt: skip
    assert set(SKIPPED_BASES) <= known
