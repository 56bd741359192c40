"""One page for every public name, and the page that lists them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from docs.extensions.project_pages import reference_keys, write_if_changed
from docs.extensions.public_names import GROUPS, Group, public_objects

_SKIPPED = re.compile(r"set_\w+_request$|kernel_class$")
_FORMS = {"class": "autoclass", "exception": "autoexception", "function": "autofunction"}


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", link_references)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "api"
    pages = {f"{path}.rst": page(path, value) for path, value in public_objects().items()}
    pages["index.rst"] = index_page()
    for stale in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        write_if_changed(folder / name, text)


def page(path: str, value: Any) -> str:
    module, _, name = path.rpartition(".")
    lines = [
        title(name, "="),
        f".. currentmodule:: {module}\n",
        f".. {_FORMS[kind(value)]}:: {name}\n",
        # Without an example that uses it, the directive leaves nothing.
        f".. minigallery:: {path}\n   :add-heading: In the gallery\n   :heading-level: -\n",
    ]
    return "\n".join(lines)


def kind(value: Any) -> str:
    if not inspect.isclass(value):
        return "function"
    return "exception" if issubclass(value, BaseException) else "class"


def index_page() -> str:
    parts = [
        title("API", "="),
        "Every name that users may rely on, one page each. Estimators follow scikit-learn: "
        "parameters are those of the constructor, what ends with an underscore is there after "
        "``fit``.\n",
    ]
    return "\n".join([*parts, *map(section, GROUPS)])


def section(group: Group) -> str:
    objects = public_objects()
    rows = [
        f"   * - :doc:`{path.removeprefix('powersketch.')} <{path}>`\n"
        f"     - {summary(objects[path])}"
        for path in group.paths()
    ]
    table = ".. list-table::\n   :widths: 35 65\n   :class: api-names\n\n" + "\n".join(rows)
    entries = "\n".join(f"   {path.rpartition('.')[2]} <{path}>" for path in group.paths())
    toctree = f".. toctree::\n   :hidden:\n   :caption: {group.title}\n\n{entries}"
    return "\n".join([title(group.title, "-"), group.sentence, "", table, "", toctree, ""])


def summary(value: Any) -> str:
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def skip_member(
    app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn generates to route metadata, and what serves registries only."""
    return True if _SKIPPED.match(name) else None


def link_references(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Make links of keys such as [SWYZ21]."""
    keys = "|".join(map(re.escape, reference_keys()))
    for number, line in enumerate(lines):
        lines[number] = re.sub(
            rf"\[({keys})\]",
            lambda key: rf":ref:`[{key[1]}] <reference-{key[1].lower()}>`",
            line,
        )
