"""Charts with logarithmic axes, drawn as SVG that scales with the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powersketch.comparison.page_axes import LogAxis
from powersketch.comparison.page_looks import Look
from powersketch.comparison.page_markup import Markup, element, joined, text

# A phone shows these units as pixels, so that the text in them keeps its size there.
WIDTH, HEIGHT = 360, 286
LEFT, RIGHT, TOP, BOTTOM = 50, 342, 26, 244

_BETWEEN_COLUMNS, _BETWEEN_ROWS = 46.0, 20.0
_HALF_LETTER = 4.0
_TOUCHED = 9


@dataclass(frozen=True)
class Point:
    """A measured point, maybe with a range about it, and what is said about it."""

    x: float
    y: float
    description: str
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """What a method's name and look stand for: a line through a path, and marked points."""

    name: str
    look: Look | None
    path: tuple[tuple[float, float], ...]
    points: tuple[Point, ...] = ()


def chart(label: str, across: LogAxis, up: LogAxis, lines: Sequence[Line]) -> Markup:
    """Return the chart; a line without a look is the reference that others are held against."""
    return element(
        "svg",
        element("g", *_grid(across, up), class_="grid"),
        *_axis_labels(across, up),
        *(_drawn(line, across, up) for line in lines),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="group",
        aria_label=label,
    )


def _grid(across: LogAxis, up: LogAxis) -> list[Markup]:
    parts = [element("path", d=f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", class_="axes")]
    for value in across.ticks(_BETWEEN_COLUMNS):
        x = _pixels(across.position(value))
        parts.append(element("path", d=f"M{x} {TOP}V{BOTTOM + 4}"))
        parts.append(_label_below(across.position(value), across.name(value)))
    for value in up.ticks(_BETWEEN_ROWS):
        y = _pixels(up.position(value))
        parts.append(element("path", d=f"M{LEFT - 4} {y}H{RIGHT}"))
        parts.append(_label(LEFT - 7, y, up.name(value), "end", dy="0.35em"))
    return parts


def _axis_labels(across: LogAxis, up: LogAxis) -> list[Markup]:
    return [
        _label((LEFT + RIGHT) / 2, HEIGHT - 8, across.label, "middle", class_="axis-label"),
        _label(4, 14, up.label, "start", class_="axis-label"),
    ]


def _label_below(x: float, content: str) -> Markup:
    """Return the label of a tick; one close to the right edge is moved into the picture."""
    rightmost = WIDTH - _HALF_LETTER * len(content)
    return _label(_pixels(min(x, rightmost)), BOTTOM + 16, content, "middle")


def _label(x: object, y: object, content: str, anchor: str, **attributes: object) -> Markup:
    return element("text", text(content), x=x, y=y, text_anchor=anchor, **attributes)


def _drawn(line: Line, across: LogAxis, up: LogAxis) -> Markup:
    pixels = [_place(across, up, x, y) for x, y in line.path]
    look = line.look
    parts = [
        element(
            "path",
            d=f"M{'L'.join(pixels)}",
            class_="line",
            stroke_dasharray=look.dash if look else None,
        )
        if pixels
        else Markup(""),
        *(_marked(point, look, across, up) for point in line.points),
    ]
    return element(
        "g",
        joined(*parts),
        class_=f"series {look.colour} {look.owner}" if look else "series reference",
        data_name=line.name,
    )


def _marked(point: Point, look: Look | None, across: LogAxis, up: LogAxis) -> Markup:
    """Return a point with its whisker, and a larger disc around it that fingers can hit."""
    x, y = _place(across, up, point.x, point.y).split(" ")
    marker = look.marker() if look else element("circle", r=2.5, class_="marker")
    return element(
        "g",
        element("title", text(point.description)),
        _whisker(point, y, up),
        element("circle", r=_TOUCHED, class_="touched"),
        marker,
        class_="point",
        transform=f"translate({x} {y})",
        tabindex=0,
        role="img",
        aria_label=point.description,
    )


def _whisker(point: Point, y: str, up: LogAxis) -> Markup:
    if point.spread is None:
        return Markup("")
    low, high = (_pixels(up.position(value) - float(y)) for value in point.spread)
    return element("path", d=f"M0 {low}V{high}", class_="whisker")


def _place(across: LogAxis, up: LogAxis, x: float, y: float) -> str:
    return f"{_pixels(across.position(x))} {_pixels(up.position(y))}"


def _pixels(position: float) -> str:
    return f"{position:.1f}".removesuffix(".0")
