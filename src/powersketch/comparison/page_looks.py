"""How a method looks in every figure: a colour, a dash pattern and a marker of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from powersketch.comparison.page_markup import Markup, element

# The style sheet has so many colours, told apart with any kind of colour vision; the markers and
# the dashes tell apart those that come again.
_COLOURS = 7
_DASHES = (None, "7 3", "2 3", "9 3 2 3")
_RADIUS = 3.6


def _polygon(corners: int, turn: float, *, inner: float = 1.0) -> str:
    """Return the path of a regular polygon; every other corner may lie further inside."""
    points = []
    for corner in range(corners):
        angle = 2.0 * math.pi * (corner / corners + turn)
        radius = _RADIUS * 1.2 * (inner if corner % 2 else 1.0)
        points.append(f"{radius * math.sin(angle):.2f} {-radius * math.cos(angle):.2f}")
    return f"M{'L'.join(points)}Z"


_CIRCLE = (
    f"M{-_RADIUS} 0A{_RADIUS} {_RADIUS} 0 1 1 {_RADIUS} 0A{_RADIUS} {_RADIUS} 0 1 1 {-_RADIUS} 0Z"
)
_SHAPES = (
    _CIRCLE,
    _polygon(4, 1 / 8),
    _polygon(3, 0.0),
    _polygon(4, 0.0),
    _polygon(3, 1 / 2),
    _polygon(10, 0.0, inner=0.45),
    _polygon(8, 1 / 8, inner=0.35),
    _polygon(8, 0.0, inner=0.35),
)


@dataclass(frozen=True)
class Look:
    """The look of the method with this number; the library's main method is drawn bolder."""

    number: int
    bold: bool = False

    @property
    def colour(self) -> str:
        """The class that gives the colour and the weight of the line."""
        return f"colour-{self.number % _COLOURS}{' bold' if self.bold else ''}"

    @property
    def owner(self) -> str:
        """The class by which everything that shows the method appears and disappears."""
        return f"method-{self.number}"

    @property
    def dash(self) -> str | None:
        """The dashes of the line; None is a solid one."""
        return _DASHES[self.number % len(_DASHES)]

    def marker(self) -> Markup:
        """Return the marker around the origin; from the ninth method on they are hollow."""
        hollow = (self.number // len(_SHAPES)) % 2 == 1
        return element(
            "path",
            d=_SHAPES[self.number % len(_SHAPES)],
            class_="marker hollow" if hollow else "marker",
        )

    def swatch(self) -> Markup:
        """Return a piece of the line with a marker, for the legend."""
        line = element("path", d="M-17 0H17", class_="line", stroke_dasharray=self.dash)
        return element(
            "svg",
            element("g", line, self.marker(), class_=self.colour),
            class_="swatch",
            viewBox="-18 -7 36 14",
            aria_hidden="true",
        )
