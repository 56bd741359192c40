"""The page of benchmarks: every table of the results file, its command, figures of some."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.readme import formatted
from benchmarks.report import RESULTS
from docs.extensions.pictures import draw_both

_OPENING = """\
# All measurements

Every table of `benchmarks/results.json`, written when this site was built. Each table was measured
in one run, beside what it is compared to, on the machine named below; the command repeats its part
on yours. Errors are ‖Z Zᵀ − K‖ / ‖K‖ (Frobenius): an error of 1 is that of features that are all
zero. A *bar* is what a figure is held to; where it does not hold, the table says so.

`make bench` runs everything; some parts need the Debian package `dataset-fashion-mnist` and fetch
further data sets as Python packages.
"""
_CHAPTERS = {
    "features": "Feature maps",
    "comparisons": "Methods side by side",
    "solvers": "Kernel systems",
    "ridge": "Ridge regression on features",
    "models": "Models that choose for themselves",
    "large": "Large problems",
    "dask": "Several machines",
    "certificates": "Certificates",
    "house": "The house itself",
}


@dataclass(frozen=True)
class Chart:
    """Columns of a table as lines over another column, for the rows that a condition keeps."""

    x: str
    lines: Mapping[str, str]
    x_label: str
    y_label: str
    keep: Callable[[Mapping[str, Any]], bool] = lambda row: True
    x_log: bool = True

    def draw(self, rows: Sequence[Mapping[str, Any]]) -> Figure:
        kept = [row for row in rows if self.keep(row)]
        positions = [row[self.x] for row in kept]
        figure = Figure(figsize=(6.8, 3.6), layout="constrained")
        axes = figure.subplots()
        for column, label in self.lines.items():
            axes.plot(positions, [row[column] for row in kept], "o-", label=label)
        axes.set_yscale("log")
        if self.x_log:
            axes.set_xscale("log", base=2)
        axes.set_xticks(positions, [f"{position:g}" for position in positions])
        axes.minorticks_off()
        axes.set(xlabel=self.x_label, ylabel=self.y_label)
        axes.grid(alpha=0.25)
        figure.legend(loc="outside upper left", ncols=3)
        return figure


_FRONTIER = "error against seconds and memory"
_SCORES = ("on rows they have not seen", "accuracy by table")
_NOT_MODELS = ("data", "rows", "columns", "coverage", "calibration", "bars")
_LEAST_ERROR = 1e-3  # smaller ones are drawn there
_ERROR = "‖Z Zᵀ − K‖ / ‖K‖"
_BY_DEGREE = (
    "Relative error on 400 digits by degree: the literal algorithm, norms preserved, default"
)
_CHARTS = {
    _BY_DEGREE: Chart(
        "degree",
        {
            "default": "PolynomialSketch",
            "scikit-learn": "PolynomialCountSketch",
            "literal": "the paper's literal sketch",
        },
        "degree, 1024 features",
        _ERROR,
        keep=lambda row: row["components"] == 1024,
    ),
    "Gaussian kernel: relative error on 800 digits rows": Chart(
        "gamma",
        {
            "auto": "GaussianSketch",
            "RBFSampler": "RBFSampler",
            "orthogonal": "orthogonal features",
            "Nystroem, 400": "Nystroem, 400 features",
        },
        "gamma, 1024 features",
        _ERROR,
    ),
}


def text(static: Path) -> str:
    """Return the page, its figures drawn into the folder of static files."""
    results = json.loads(RESULTS.read_text("utf-8"))
    order = [*_CHAPTERS]
    chapters: dict[str, list[str]] = {}
    for part in sorted(results, key=lambda part: (order.index(part.split(".")[0]), part)):
        chapters.setdefault(part.split(".")[0], []).append(_part(part, results[part], static))
    bodies = [f"## {_CHAPTERS[name]}\n\n" + "\n".join(parts) for name, parts in chapters.items()]
    return "\n".join([_OPENING, *bodies])


def _part(part: str, measured: Mapping[str, Any], static: Path) -> str:
    lines: list[str] = []
    for table, following in pairwise([*measured["tables"], {"machine": None}]):
        lines.append(_table(table, static))
        # Tables of a part may be of different machines, if they were measured one by one.
        if table["machine"] != following["machine"]:
            machine = "; ".join(f"{name} {value}" for name, value in table["machine"].items())
            lines.append(f"*Machine: {machine}.*\n")
    return "\n".join([*lines, f"```console\n$ make bench PART={part}\n```\n"])


def _table(table: Mapping[str, Any], static: Path) -> str:
    rows = table["rows"]
    columns = [name for name in rows[0] if name != "bars"]
    has_bars = any(row["bars"] for row in rows)
    head = [*columns, *["bar"] * has_bars]
    lines = [head, ["---"] * len(head)]
    lines += [
        [*(formatted(row[name]) for name in columns), *[_bars(row)] * has_bars] for row in rows
    ]
    body = "".join("| " + " | ".join(_escaped(cell) for cell in line) + " |\n" for line in lines)
    return f"### {table['title']}\n\n{table['note']}\n\n{_figure(table, static)}{body}"


def _bars(row: Mapping[str, Any]) -> str:
    told = [bar["bar"] + ("" if bar["holds"] else " (**does not hold**)") for bar in row["bars"]]
    return "; ".join(told) or "–"


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|")


def _drawn_frontier(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw a line over seconds and one over gigabytes for every method, a point for every size."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    all_axes = figure.subplots(ncols=2, sharey=True)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for axes, column in zip(all_axes, ("seconds", "GB"), strict=True):
        for method in methods:
            points = [(row[column], row["error"]) for row in rows if row["method"] == method]
            axes.plot(*zip(*points, strict=True), "o-", label=method)
        axes.set(xscale="log", yscale="log", xlabel=column)
        axes.grid(alpha=0.25)
    all_axes[0].set_ylabel("error")
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


def _drawn_scores(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw a line for every data set with a dot for what each model leaves unexplained."""
    models = [
        name
        for name in rows[0]
        if name not in _NOT_MODELS and any(_is_number(row[name]) for row in rows)
    ]
    errors = [
        {name: 1.0 - float(row[name]) for name in models if _is_number(row[name])} for row in rows
    ]
    order = sorted(
        (number for number, each in enumerate(errors) if len(each) > 1),
        key=lambda number: errors[number][models[0]],
        reverse=True,
    )
    figure = Figure(figsize=(8.4, 1.6 + 0.22 * len(order)), layout="constrained")
    axes = figure.subplots()
    for name, marker in zip(models, "osD^vP", strict=False):
        shown = [place for place, number in enumerate(order) if name in errors[number]]
        values = [max(errors[order[place]][name], _LEAST_ERROR) for place in shown]
        axes.plot(values, shown, marker, label=name, markersize=7 if name == models[0] else 5)
    axes.set_yticks(range(len(order)), [rows[number]["data"] for number in order])
    axes.set(xscale="log", xlabel="1 − score")
    axes.grid(alpha=0.25)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return figure


def _is_number(cell: Any) -> bool:
    return isinstance(cell, str) and cell.replace(".", "").isdigit()


def _figure(table: Mapping[str, Any], static: Path) -> str:
    title = table["title"]
    chart = _CHARTS.get(title)
    if chart is not None:
        draw: Callable[..., Figure] = chart.draw
    elif title.endswith(_FRONTIER):
        draw = _drawn_frontier
    elif title.endswith(_SCORES):
        draw = _drawn_scores
    else:
        return ""
    name = re.sub(r"\W+", "-", title.lower(), flags=re.ASCII)[:40].strip("-")
    draw_both(static / "drawn" / name, partial(draw, table["rows"]))
    return (
        "".join(
            f"![{title}](/_static/drawn/{name}-{theme}.svg){{.only-{theme}}}\n"
            for theme in ("light", "dark")
        )
        + "\n"
    )
