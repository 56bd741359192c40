"""What ties estimators to other tools: arrays of other libraries, links of their HTML view."""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config

from powersketch.arrays import Real
from powersketch.exceptions import InputTypeError

_PAGE = "api/powersketch.{estimator_name}.html"


def is_of_array_library(X: Any) -> bool:
    """Tell arrays of the array API, and torch's tensors, which do not bear its mark."""
    kind = type(X)
    marked = hasattr(kind, "__array_namespace__") or _root(kind) == "torch"
    return marked and hasattr(kind, "__dlpack__") and not isinstance(X, np.ndarray | np.generic)


def shared_with_numpy(name: str, X: Any) -> Real:
    """Return a NumPy array of the same memory, or say why there can be none, and what to do."""
    try:
        array: Real = np.from_dlpack(X)
    except (BufferError, RuntimeError, TypeError, ValueError) as reason:
        kind = f"{type(X).__module__}.{type(X).__name__}"
        raise InputTypeError(
            f"{name} is a {kind} of dtype {X.dtype} on device {getattr(X, 'device', 'unknown')}, "
            f"which NumPy cannot read in place ({reason}); allowed are dense arrays of plain "
            "numbers in main memory: copy it there, detached from gradients, as float32 or "
            f"float64 (torch: {name}.detach().cpu().to_dense().float())."
        ) from reason
    return array


def in_library_of(X: Any, Z: Real, transformer: Any) -> Any:
    """Return the features as an array of the library that the rows came from, without a copy.

    As in scikit-learn, that is so with ``array_api_dispatch=True`` in its configuration only.
    Tables that `set_output` asks for are made of NumPy arrays.
    """
    if type(X) is np.ndarray or not is_of_array_library(X):
        return Z
    chosen, config = getattr(transformer, "_sklearn_output_config", {}), get_config()
    output = chosen.get("transform", config["transform_output"])
    if not config["array_api_dispatch"] or output != "default":
        return Z
    return _library(X).asarray(Z, device=X.device)


class DocumentationLinks:
    """The page of an estimator, to which its HTML view in notebooks links.

    The address is that of the project's metadata; without one there is no link.
    """

    _doc_link_module: ClassVar[str] = "powersketch"

    @property
    def _doc_link_template(self) -> str:
        home = documentation_home()
        return f"{home}/{_PAGE}" if home else ""


@cache
def documentation_home() -> str:
    """Return the address of the documentation, or nothing."""
    for entry in metadata.metadata("powersketch").get_all("Project-URL", []):
        label, _, address = entry.partition(", ")
        if label == "Documentation":
            return str(address).rstrip("/")
    return ""


def _library(X: Any) -> Any:
    return X.__array_namespace__() if hasattr(X, "__array_namespace__") else sys.modules["torch"]


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]
