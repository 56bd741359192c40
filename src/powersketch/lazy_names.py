"""Names of a package that are imported when they are first used, so that the rest loads quickly."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def loader_of_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function that a package calls `__getattr__`.

    Parameters
    ----------
    package : str
        Its name.
    modules : mapping from str to str
        From a name to the module of the package that defines it, or to itself if it is a module.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{modules[name]}")
        found = module if modules[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return found

    return load
