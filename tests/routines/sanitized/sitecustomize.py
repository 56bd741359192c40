"""Puts the module that POWERSKETCH_SANITIZED names in the place of the installed one.

Python imports this file at its start, because `make sanitize` puts its folder on the path: so every
process that tests start has the module, too.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any

_NAME = "powersketch._native"


class _Sanitized(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != _NAME:
            return None
        file = os.path.abspath(os.environ["POWERSKETCH_SANITIZED"])
        return importlib.util.spec_from_file_location(_NAME, file)


sys.meta_path.insert(0, _Sanitized())
