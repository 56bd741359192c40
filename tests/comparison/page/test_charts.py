"""Where values lie on logarithmic axes, and which are written beside them."""

from __future__ import annotations

from collections.abc import Sequence

from powersketch.comparison.page.charts import LogAxis
from powersketch.comparison.text import tick_text


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
