"""The exact and the approximate kernels as small PNG images that stand in the page itself."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64
from powersketch.comparison.page.charts import MethodSeries
from powersketch.comparison.results import Comparison

# More shades could not be told apart, and would only make the files larger.
_SHADES = 64

# From dark to light: the order is seen without colour vision, too.
_SEQUENTIAL = ((16, 12, 66), (32, 74, 135), (38, 138, 141), (122, 196, 104), (250, 238, 150))
_DIVERGING = ((22, 72, 140), (112, 168, 212), (246, 246, 244), (232, 140, 92), (150, 44, 10))
# Colours are spread over the values between these: a few large entries would take them all.
_PERCENTILES = (1.0, 99.0)

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS, _INDEXED = 8, 3


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
