"""What long benchmarks measured before, kept in the user's cache: an interrupted one goes on."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib

import powersketch
from benchmarks.data import cache_folder
from benchmarks.report import write_atomically


def kept(key: Sequence[Any], measure: Callable[[], Any]) -> Any:
    """Return what is measured now, or was with an equal key; both as JSON gives it back."""
    path = cache_folder() / "outcomes" / f"{joblib.hash(list(key))}.json"
    if not path.exists():
        write_atomically(path, json.dumps(measure()))
    return json.loads(path.read_text())


def library_sources(*without: str) -> list[str]:
    """Return what outcomes of this library depend on, but for files of some names."""
    package = Path(powersketch.__file__).parent
    files = [*sorted(package.rglob("*.py")), *sorted(package.rglob("*.so"))]
    names = (file for file in files if file.name not in without)
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in names]
