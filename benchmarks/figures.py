"""Pictures of errors against the number of features, one panel for every data set."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator
from report import RESULTS

Curve = Mapping[int, float]
"""Error by number of features."""

OURS = {"color": "#0b6e99", "marker": "o", "linewidth": 2.4, "zorder": 3}
RANDOM = ({"color": "#d9730d", "marker": "s"}, {"color": "#6a994e", "marker": "^"})
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
    figure, all_axes = plt.subplots(
        1, len(panels), figsize=(4.0 * len(panels), 4.0), layout="constrained", squeeze=False
    )
    for axes, (panel, curves) in zip(all_axes[0], panels.items(), strict=True):
        _draw_panel(axes, curves, styles)
        axes.set_title(panel, fontsize=11)
    all_axes[0, 0].set_ylabel("relative error of the kernel matrix")
    figure.suptitle(title, fontsize=13)
    handles, labels = all_axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=150)
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
    axes.grid(which="major", color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _label_axes(axes: Axes, sizes: Sequence[int]) -> None:
    """Mark the sizes themselves, and enough errors that a narrow range has labels too."""
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=9)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
    low, high = axes.get_ylim()
    steps = (1.0,) if math.log10(high / low) > 3 else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda error, _: f"{error:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
