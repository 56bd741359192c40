"""Pages of HTML, figures included, that need no network and no other file; and numbers in words."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from powersketch.pages.charts import (
    FRAME,
    Axis,
    Chart,
    Line,
    LinearAxis,
    LogAxis,
    Look,
    Point,
    across,
    pixels,
    upwards,
)
from powersketch.pages.images import ColourScale
from powersketch.pages.text import (
    MISSING,
    bytes_text,
    number_text,
    seconds_text,
    spread_text,
    tick_text,
)

__all__ = [
    "MISSING",
    "Axis",
    "Cell",
    "Chart",
    "ColourScale",
    "Line",
    "LinearAxis",
    "LogAxis",
    "Look",
    "Point",
    "across",
    "bytes_text",
    "number_text",
    "picture",
    "rendered",
    "seconds_text",
    "spread_text",
    "tick_text",
    "upwards",
]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its column and class, what it shows, and the value to sort rows by."""

    heading: str
    role: str
    text: str
    value: object
    best: bool = False


def rendered(template: str, room: str, *, rules: str = "", **values: Any) -> str:
    """Return the page, or the picture, of a template; equal values give equal text.

    Parameters
    ----------
    template : str
        The name of the template's file. It may extend ``page.html`` and import ``charts.html``,
        which are here.
    room : str
        The package that holds the file.
    rules : str, default=""
        Rules of style besides those of all pages.
    **values : dict
        What the template shows. It is escaped.

    Returns
    -------
    str
        HTML that contains its style, script and images, under a policy that forbids everything
        else. Without the script everything is shown as well, only tables cannot be sorted.
    """
    # Loaded when it is first needed: those who want numbers only need no templates.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def source(name: str) -> str:
        return _asset(room if name == template else __name__, name)

    environment = Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number_text, "pixels": pixels, "seconds": seconds_text}
    style, script = _asset(__name__, "page.css") + rules, _asset(__name__, "page.js")
    environment.globals |= {
        "frame": FRAME,
        "style": style,
        "script": script,
        "policy": _policy(style, script),
    }
    return environment.get_template(template).render(values)


def picture(title: str, charts: Sequence[Chart], legend: Sequence[tuple[str, Look]]) -> str:
    """Return charts side by side as one SVG, for a file of its own."""
    return rendered("picture.svg", __name__, title=title, charts=charts, legend=legend)


def _asset(room: str, name: str) -> str:
    return (files(room) / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the policy that forbids everything except the contents of the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
