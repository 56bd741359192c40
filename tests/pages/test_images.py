"""Matrices as PNG images: read back by the book."""

from __future__ import annotations

import base64
import math
import struct
import zlib

import numpy as np

from powersketch.pages import ColourScale


def pixels_of(address: str) -> np.ndarray:
    """Decode an indexed PNG by the book: signature, checked chunks, lines without a filter."""
    content = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = {}, 8
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        name, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        assert zlib.crc32(name + data) == check
        chunks[name] = data
        place += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[lines[:, 1:]]


def test_images_show_the_matrix_on_the_scale() -> None:
    scale = ColourScale.sequential(0.0, 1.0)
    pixels = pixels_of(scale.image(np.array([[0.0, 1.0, -5.0], [0.5, 7.0, math.nan]])))
    assert pixels.shape == (2, 3, 3)
    np.testing.assert_array_equal(pixels[0, 0], pixels[0, 2])
    np.testing.assert_array_equal(pixels[0, 1], pixels[1, 1])
    np.testing.assert_array_equal(pixels[0, 0], pixels[1, 2])
    brightness = pixels_of(scale.bar())[0].astype(float) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(brightness) > 0.0).all()
    assert brightness[0] < pixels[1, 0] @ [0.2126, 0.7152, 0.0722] < brightness[-1]


def test_differences_are_white_at_zero_and_coloured_by_sign() -> None:
    low, zero, high = pixels_of(ColourScale.symmetric(2.0).image(np.array([[-2.0, 0.0, 2.0]])))[0]
    assert zero.min() > 230
    assert low[2] > low[0]
    assert high[0] > high[2]
