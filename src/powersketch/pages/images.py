"""Matrices as images: colour scales, and PNG files that are their own address."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64

# More shades could not be told apart, and would only make the files larger.
_SHADES = 64

# From dark to light: the order is seen without colour vision, too.
_SEQUENTIAL = ((16, 12, 66), (32, 74, 135), (38, 138, 141), (122, 196, 104), (250, 238, 150))
_DIVERGING = ((22, 72, 140), (112, 168, 212), (246, 246, 244), (232, 140, 92), (150, 44, 10))

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
