"""Elements of HTML and SVG as text, with everything in them escaped."""

from __future__ import annotations

from html import escape
from typing import NewType

# Text that may stand in a page as it is. Only this module makes it from text that may not.
Markup = NewType("Markup", str)


def text(content: object) -> Markup:
    """Return the content so that a browser shows it literally."""
    return Markup(escape(str(content), quote=True))


def joined(*parts: Markup, between: str = "") -> Markup:
    """Return the parts one after the other."""
    return Markup(between.join(parts))


def element(name: str, /, *content: Markup, **attributes: object) -> Markup:
    """Return an element; one without content is closed at once, as XML demands.

    An underscore in an attribute's name stands for a hyphen, one at its end keeps the name apart
    from Python's words. An attribute that is None or False is left out, and True has no value
    of its own.
    """
    start = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    if not content:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{''.join(content)}</{name}>")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f' {name}="{text(name if value is True else value)}"'
