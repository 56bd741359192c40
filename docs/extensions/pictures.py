"""Pictures that are drawn when the site is built, for light and for dark pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sphinx.application import Sphinx

from benchmarks.report import RESULTS
from powersketch import PolynomialSketch

OURS, PEER, MUTED = "#1a7f9c", "#d9730d", "#8a8f98"
SERIES = (OURS, PEER, "#5b8c3a", "#a2559c", "#b8860b", MUTED)
_INK = {"light": "#24292f", "dark": "#d0d7de"}
_HOME = "home"


def setup(app: Sphinx) -> dict[str, Any]:
    # Before the pages are written.
    app.connect("builder-inited", draw_home, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def draw_home(app: Sphinx) -> None:
    draw_both(Path(app.srcdir) / "_static" / "drawn" / _HOME, home)


def draw_both(stem: Path, draw: Callable[[], Figure]) -> None:
    """Save a figure as STEM-light.svg and STEM-dark.svg, on transparent ground."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    for theme, ink in _INK.items():
        with mpl.rc_context(_style(ink)):
            path = stem.with_name(f"{stem.name}-{theme}.svg")
            draw().savefig(path, transparent=True, metadata={"Date": None})


def _style(ink: str) -> dict[str, Any]:
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(inked, ink),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": 11,
        "axes.prop_cycle": mpl.cycler(color=SERIES),
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.linewidth": 2.2,
        "font.size": 10,
        "svg.hashsalt": "powersketch",
    }


def home() -> Figure:
    """Return the exact kernel, that of the features, and their error by degree."""
    figure = Figure(figsize=(10.4, 3.5), layout="constrained")
    exact, sketched, errors = figure.subplots(1, 3, width_ratios=(1, 1, 1.35))
    X, y = load_digits(return_X_y=True)
    rows = np.argsort(y, kind="stable")[::5]
    X = X[rows] / np.linalg.norm(X[rows], axis=1, keepdims=True)
    sketch = PolynomialSketch(degree=8, n_components=1024, random_state=0).fit(X)
    K, Z = sketch.kernel_(X), sketch.transform(X)
    error = np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K)
    shown = {"vmin": 0, "vmax": float(np.quantile(K, 0.98)), "cmap": "viridis"}
    exact.imshow(K, **shown)
    exact.set_title("Exact kernel K")
    exact.set_xlabel(f"{len(X)} digits, degree 8")
    sketched.imshow(Z @ Z.T, **shown)
    sketched.set_title("Features Z: Z Zᵀ")
    sketched.set_xlabel(f"1024 features, error {100 * error:.0f} %")
    for axes in (exact, sketched):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    _errors_by_degree(errors)
    return figure


def _errors_by_degree(axes: Any) -> None:
    parts = json.loads(RESULTS.read_text("utf-8"))["features.polynomial_accuracy"]["tables"]
    rows = [row for row in parts[0]["rows"] if row["components"] == 1024]
    degrees = [row["degree"] for row in rows]
    axes.plot(degrees, [row["default"] for row in rows], "o-", color=OURS)
    axes.plot(degrees, [row["scikit-learn"] for row in rows], "s-", color=PEER)
    axes.annotate("PolynomialSketch", (degrees[1], rows[1]["default"]), (4, -30),
                  textcoords="offset points", ha="left", color=OURS, weight="bold")  # fmt: skip
    axes.annotate("PolynomialCountSketch", (degrees[-1], rows[-1]["scikit-learn"]), (-4, -18),
                  textcoords="offset points", ha="right", color=PEER, weight="bold")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(degrees, [str(degree) for degree in degrees])
    axes.minorticks_off()
    axes.set_title("Error by degree, 1024 features")
    axes.set_xlabel("degree of the kernel")
    axes.set_ylabel("‖Z Zᵀ − K‖ / ‖K‖")
    axes.grid(alpha=0.25)
