"""Pictures: errors against numbers of features, and any curves, one panel for every data set."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from benchmarks.report import PICTURES

Curve = Mapping[int, float]
"""Error by number of features."""
Points = Sequence[tuple[float, float]]

INCHES_OF_LABEL = 2.6
OURS = {"color": "#0b6e99", "marker": "o", "linewidth": 2.4, "zorder": 3}
RANDOM = ({"color": "#d9730d", "marker": "s"}, {"color": "#6a994e", "marker": "^"})
DOTS = (
    {"color": "#999999", "marker": "s"},
    {"color": "#d9730d", "marker": "^"},
    {"color": "#6a994e", "marker": "D"},
    {"color": "#7b6fb0", "marker": "v"},
    {"color": "#b5485d", "marker": "P"},
)
FROM_DATA = {"color": "#777777", "marker": "D", "linestyle": "--"}


def error_figure(
    name: str,
    title: str,
    panels: Mapping[str, Mapping[str, Curve]],
    *,
    ours: str,
    from_data: str,
) -> str:
    """Draw the curves of every panel, write the picture and return its file's name.

    `ours` and `from_data` are the names of the curves of this library and of the method that
    takes its features from the data; the others are random features.
    """
    styles = {ours: OURS, from_data: FROM_DATA}
    figure, all_axes = _panels(len(panels))
    for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
        _draw_panel(axes, curves, styles)
        axes.set_title(panel, fontsize=11)
    all_axes[0].set_ylabel("relative error of the kernel matrix")
    return _written(name, title, figure)


def curve_figure(
    name: str,
    title: str,
    panels: Mapping[str, Mapping[str, Points]],
    *,
    styles: Mapping[str, dict[str, Any]],
    x: str,
    y: str,
    y_scale: str = "log",
) -> str:
    """Draw points joined by lines, with a logarithmic x axis, and return the picture's name.

    `x` and `y` are what the axes show; every curve has its style.
    """
    figure, all_axes = _panels(len(panels))
    for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
        for curve, points in curves.items():
            axes.plot(*zip(*points, strict=True), label=curve, markersize=5, **styles[curve])
        axes.set(xscale="log", yscale=y_scale, xlabel=x)
        axes.set_title(panel, fontsize=11)
        _label_decades(axes.xaxis, *axes.get_xlim())
        if y_scale == "log":
            _label_decades(axes.yaxis, *axes.get_ylim())
        else:
            axes.set_ylim(bottom=0.0)
        _set_off(axes)
    all_axes[0].set_ylabel(y)
    return _written(name, title, figure)


def dot_figure(
    name: str,
    title: str,
    lines: Mapping[str, Mapping[str, float]],
    *,
    methods: Sequence[str],
    x: str,
    least: float = 1e-3,
) -> str:
    """Draw a line with a dot for every method, write the picture and return its file's name.

    The x axis is logarithmic, and values below `least` are drawn there. The first of the methods is
    ours, and the lines are in the order of its values.
    """
    ordered = sorted(lines, key=lambda line: lines[line][methods[0]], reverse=True)
    figure, axes = plt.subplots(figsize=(8.5, 1.8 + 0.24 * len(lines)), layout="constrained")
    for method, style in zip(methods, (OURS, *DOTS), strict=False):
        shown = [
            (max(lines[line][method], least), line) for line in ordered if method in lines[line]
        ]
        if shown:
            values, names = zip(*shown, strict=True)
            dots = {"zorder": 2, **style, "linewidth": 0, "markersize": 6}
            axes.plot(values, [ordered.index(line) for line in names], label=method, **dots)
    axes.set(xscale="log", xlabel=x, ylim=(-0.7, len(lines) - 0.3))
    axes.set_yticks(range(len(ordered)), ordered)
    _label_decades(axes.xaxis, *axes.get_xlim())
    _set_off(axes)
    return _written(name, title, figure)


def _panels(count: int) -> tuple[Figure, Sequence[Axes]]:
    figure, all_axes = plt.subplots(
        1, count, figsize=(4.0 * max(count, 2), 4.0), layout="constrained", squeeze=False
    )
    return figure, all_axes[0]


def _written(name: str, title: str, figure: Figure) -> str:
    """Add title and legend, write the picture and return its file's name."""
    figure.suptitle(title, fontsize=13)
    labelled = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        labelled |= dict(zip(labels, handles, strict=True))
    figure.legend(
        labelled.values(),
        labelled.keys(),
        loc="outside lower center",
        ncols=min(len(labelled), round(figure.get_figwidth() / INCHES_OF_LABEL)),
        frameon=False,
    )
    PICTURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", dpi=150)
    plt.close(figure)
    return f"{name}.png"


def _draw_panel(
    axes: Axes, curves: Mapping[str, Curve], styles: Mapping[str, dict[str, Any]]
) -> None:
    others = iter(RANDOM)
    for name, curve in curves.items():
        style = styles.get(name) or next(others)
        axes.plot(list(curve), list(curve.values()), label=name, markersize=5, **style)
    axes.set(xscale="log", yscale="log", xlabel="number of features")
    _label_axes(axes, sorted({size for curve in curves.values() for size in curve}))
    _set_off(axes)


def _set_off(axes: Axes) -> None:
    axes.grid(which="major", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _label_axes(axes: Axes, sizes: Sequence[int]) -> None:
    """Mark the sizes themselves, and enough errors that a narrow range has labels too."""
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=9)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
    _label_decades(axes.yaxis, *axes.get_ylim())


def _label_decades(axis: Axis, low: float, high: float) -> None:
    """Mark powers of ten and, in a narrow range, numbers between them."""
    decades = math.log10(high / low)
    steps = (1.0,) if decades > 3 else (1.0, 2.0, 5.0) if decades > 0.5 else tuple(range(1, 10))
    axis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
