"""A comparison as one page of HTML, images included, that needs no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64
from powersketch.comparison.page.charts import (
    FRAME,
    NORMS,
    MethodSeries,
    charts,
    method_series,
    pixels,
)
from powersketch.comparison.recommend import MAIN_METHOD, answer
from powersketch.comparison.results import Comparison, Measurement, atomic_write
from powersketch.comparison.text import (
    INTERRUPTED,
    MISSING,
    bytes_text,
    exact_line,
    kernel_text,
    note_lines,
    number_text,
    seconds_text,
    seeds_text,
    spread_text,
)

# More shades could not be told apart, and would only make the files larger.
_SHADES = 64

# From dark to light: the order is seen without colour vision, too.
_SEQUENTIAL = ((16, 12, 66), (32, 74, 135), (38, 138, 141), (122, 196, 104), (250, 238, 150))
_DIVERGING = ((22, 72, 140), (112, 168, 212), (246, 246, 244), (232, 140, 92), (150, 44, 10))
# Colours are spread over the values between these: a few large entries would take them all.
_PERCENTILES = (1.0, 99.0)

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS, _INDEXED = 8, 3


def write_page(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the page to a file, which appears under its name when it is complete.

    Parameters
    ----------
    comparison : Comparison
        What is shown.
    path : str or path
        The file; one that is there already is replaced.
    """
    content = page_text(comparison)
    with atomic_write(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")


def page_text(comparison: Comparison) -> str:
    """Return the page; the same comparison gives the same text.

    Parameters
    ----------
    comparison : Comparison
        What is shown.

    Returns
    -------
    str
        HTML that contains its styles, script and images. Without the script everything is shown
        as well, only the table cannot be sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import compare
    >>> from powersketch.comparison.page import page_text
    >>> X = np.random.RandomState(0).rand(40, 5)
    >>> comparison = compare(X, "gaussian", methods=["fourier"], components=[16], random_state=0)
    >>> page_text(comparison)[:15]
    '<!DOCTYPE html>'
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number_text, "pixels": pixels}
    methods = method_series(comparison)
    style, script = _style(methods), _asset("page.js")
    return environment.from_string(_asset("template.html")).render(
        comparison=comparison,
        title=f"Feature maps compared: {kernel_text(comparison.kernel)}",
        seeds=seeds_text(comparison),
        exact_line=exact_line(comparison),
        notes=[INTERRUPTED] * (not comparison.complete) + note_lines(comparison),
        answer=answer(comparison),
        methods=methods,
        norms=NORMS,
        charts=charts(comparison, methods),
        frame=FRAME,
        images=kernel_images(comparison, methods),
        table=_table(comparison),
        main_method=MAIN_METHOD,
        policy=_policy(style, script),
        style=style,
        script=script,
    )


def _asset(name: str) -> str:
    return (files("powersketch.comparison.page") / name).read_text(encoding="utf-8")


def _style(methods: Sequence[MethodSeries]) -> str:
    """Return the style sheet; a method's box in the legend hides everything of that method."""
    rules = [
        f"body:has(#show-{method.number}:not(:checked)) .method-{method.number} "
        "{ display: none; }"
        for method in methods
    ]
    return "\n".join([_asset("page.css"), *rules, ""])


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


@dataclass(frozen=True)
class Cell:
    """A cell of the table: its column and class, what it shows, and the value to sort rows by."""

    heading: str
    role: str
    text: str
    value: object
    best: bool = False


def _table(comparison: Comparison) -> list[list[Cell]]:
    """Return a row of cells for every measurement; the best of every size are marked."""
    best: dict[int, Measurement] = {}
    for each in comparison.successes:
        if each.n_components not in best or each.frobenius < best[each.n_components].frobenius:
            best[each.n_components] = each
    rows = [_cells(each, each is best.get(each.n_components)) for each in comparison.measurements]
    # The last column is there only if there is something to note.
    return rows if any(row[-1].text for row in rows) else [row[:-1] for row in rows]


def _cells(measurement: Measurement, best: bool) -> list[Cell]:
    error = spread_text(measurement.frobenius, measurement.frobenius_spread)
    low, high = measurement.spectral or (math.nan, math.nan)
    interval = f"[{number_text(low)}, {number_text(high)}]" if measurement.spectral else MISSING
    memory, seconds = measurement.memory_bytes or math.nan, measurement.seconds_per_row
    marked = "Frobenius error" if best else None
    note = " ".join(f"warned: {text}" for text in measurement.warnings)
    if measurement.failed:
        note = f"failed: {measurement.error_message}"
    numbers = (
        ("components", measurement.n_components, str(measurement.n_components)),
        ("Frobenius error", measurement.frobenius, error),
        ("operator norm error", measurement.operator_norm, number_text(measurement.operator_norm)),
        ("spectral interval", max(1.0 - low, high - 1.0), interval),
        ("fit", measurement.fit_seconds, seconds_text(measurement.fit_seconds)),
        ("transform, per row", seconds, seconds_text(seconds)),
        ("memory", memory, bytes_text(memory)),
    )
    return [
        Cell("method", "method", measurement.method, measurement.method),
        *(
            Cell(heading, "number", text, "" if math.isnan(value) else value, heading == marked)
            for heading, value, text in numbers
        ),
        Cell("kind", "", measurement.kind, measurement.kind),
        Cell("note", "note", note, note),
    ]


@dataclass(frozen=True, eq=False)
class ColourScale:
    """Colours for the values from `low` to `high`; beyond them the last colour stays."""

    low: float
    high: float
    palette: NDArray[np.uint8]

    def image(self, matrix: Float64) -> str:
        """Return the matrix as the address of an image that is its own content."""
        width = self.high - self.low or 1.0
        # What is not a number at all is shown as the lowest value.
        share = np.nan_to_num((matrix - self.low) / width, nan=0.0, posinf=1.0, neginf=0.0)
        shades = np.rint(np.clip(share, 0.0, 1.0) * (_SHADES - 1)).astype(np.uint8)
        return _address(_png(shades, self.palette))

    def bar(self) -> str:
        """Return the image of the scale itself, from its lowest to its highest value."""
        return _address(_png(np.arange(_SHADES, dtype=np.uint8)[np.newaxis], self.palette))

    @classmethod
    def sequential(cls, low: float, high: float) -> ColourScale:
        """Return a scale from dark to light."""
        return cls(low, high, _interpolated(_SEQUENTIAL))

    @classmethod
    def symmetric(cls, limit: float) -> ColourScale:
        """Return a scale on which zero is nearly white, and signs are blue and red."""
        return cls(-limit, limit, _interpolated(_DIVERGING))


@dataclass(frozen=True)
class KernelPair:
    """The images of an approximation and of its difference from the exact kernel."""

    method: MethodSeries
    approximation: str
    difference: str
    error: float


@dataclass(frozen=True, eq=False)
class KernelImages:
    """All images of a page, on one scale for kernels and one for differences."""

    exact: str
    low: float
    high: float
    values: ColourScale
    differences: ColourScale
    pairs: tuple[KernelPair, ...]


def kernel_images(comparison: Comparison, methods: Iterable[MethodSeries]) -> KernelImages | None:
    """Return the images of the kernel and its approximations, if the kernel has been computed."""
    exact, images = comparison.kernel_image, comparison.approximate_images
    if exact.size == 0:
        return None
    shown = [method for method in methods if method.name in images]
    values = ColourScale.sequential(*(float(end) for end in np.percentile(exact, _PERCENTILES)))
    limit = _difference_limit(exact, [images[method.name] for method in shown])
    differences = ColourScale.symmetric(limit)
    pairs = tuple(
        KernelPair(
            method,
            values.image(images[method.name]),
            differences.image(images[method.name] - exact),
            _relative_error(images[method.name], exact),
        )
        for method in shown
    )
    low, high = float(exact.min()), float(exact.max())
    return KernelImages(values.image(exact), low, high, values, differences, pairs)


def _difference_limit(exact: Float64, images: list[Float64]) -> float:
    """Return the end of the scale of differences: what the median method needs.

    One bad method would otherwise make all others look perfect.
    """
    if not images:
        return 1.0
    largest = [float(np.percentile(np.abs(image - exact), _PERCENTILES[1])) for image in images]
    return float(np.median(largest)) or float(max(largest)) or 1.0


def _relative_error(image: Float64, exact: Float64) -> float:
    """Return the error in Frobenius norm; squares of large entries would overflow unscaled."""
    scale = float(np.abs(exact).max()) or 1.0
    return float(np.linalg.norm((image - exact) / scale) / (np.linalg.norm(exact / scale) or 1.0))


def _interpolated(anchors: tuple[tuple[int, int, int], ...]) -> NDArray[np.uint8]:
    places = np.linspace(0.0, len(anchors) - 1.0, _SHADES)
    channels = np.array(anchors, dtype=np.float64).T
    ends = np.arange(len(anchors), dtype=np.float64)
    mixed = np.stack([np.interp(places, ends, channel) for channel in channels], axis=1)
    palette: NDArray[np.uint8] = np.rint(mixed).astype(np.uint8)
    return palette


def _address(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def _png(shades: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Return a file with one byte per pixel, an index into the palette."""
    height, width = shades.shape
    header = struct.pack(">IIBBBBB", width, height, _EIGHT_BITS, _INDEXED, 0, 0, 0)
    # Every line begins with the number of its filter, and 0 is none.
    lines = np.concatenate([np.zeros((height, 1), dtype=np.uint8), shades], axis=1)
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", palette.tobytes()),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    checked = name + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
