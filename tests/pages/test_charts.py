"""Where values lie on axes, and which are written beside them."""

from __future__ import annotations

from collections.abc import Sequence

from powersketch.pages import LinearAxis, LogAxis, tick_text


def axis_around(
    values: Sequence[float], pixels: float, choices: Sequence[float] | None = None
) -> LogAxis:
    return LogAxis.around(values, 0.0, pixels, label="x", text=tick_text, choices=choices)


def test_ticks_are_round_and_apart() -> None:
    axis = axis_around([3e-4, 20.0], 300.0)
    ticks = axis.ticks(20.0)
    assert ticks == [1e-3, 1e-2, 1e-1, 1.0, 10.0]
    assert axis.position(3e-4) > 0.0
    assert axis.position(20.0) < 300.0
    assert axis.position(1e-30) == 0.0
    assert axis_around([7.0], 300.0).ticks(20.0) == [5.0, 10.0]
    sizes = axis_around([64, 128, 256, 512], 90.0, (64, 128, 256, 512))
    assert sizes.ticks(20.0) == [64, 128, 256, 512]
    assert sizes.ticks(40.0) == [64, 256]
    assert sizes.ticks(1000.0) == [64]
    assert axis_around([1e-300, 1e300], 300.0).ticks(45.0)


def test_linear_ticks_are_round_and_apart() -> None:
    axis = LinearAxis.around([-0.3, 0.9], 0.0, 300.0, label="x", text=str)
    assert axis.ticks(40.0) == [-0.2, 0.0, 0.2, 0.4, 0.6, 0.8]
    assert axis.position(0.3) == 150.0
    assert axis.position(-9.0) == 0.0
    assert LinearAxis.around([12, 4321], 300.0, 0.0, label="x", text=str).ticks(40.0) == [
        0,
        1000,
        2000,
        3000,
        4000,
    ]
    assert LinearAxis.around([7.0], 0.0, 300.0, label="x", text=str).ticks(20.0)
    assert LinearAxis.around([0.0], 0.0, 300.0, label="x", text=str).ticks(20.0)
