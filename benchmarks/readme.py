"""Writes measured figures into README.md and docs, at lines `<!-- measured: NAME -->`."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, write_atomically

ROOT = Path(__file__).parents[1]
_PLACE = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Excerpt:
    """Some rows and columns of the table with this title, under headings of their own.

    More `digits` than two are for figures of many rows, which differ less from run to run.
    """

    title: str
    columns: Mapping[str, str]
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    digits: int = 2


_MODELS = {
    "powersketch": "powersketch, default",
    "RidgeCV": "`RidgeCV`",
    "HistGradientBoosting": "`HistGradientBoosting`",
    "Nystroem + RidgeCV": "`Nystroem` + `RidgeCV`, gamma searched",
}
EXCERPTS = {
    "mnist": Excerpt(
        "Relative error on 1000 MNIST rows by expansion",
        {
            "kernel": "1000 MNIST rows of unit norm, 1024 features: error for the kernel",
            "default": "`PolynomialSketch`",
            "scikit-learn": "`PolynomialCountSketch`",
        },
        {"components": [1024], "kernel": [f"(0.5t + 0.5)^{degree}" for degree in (2, 3, 7, 16)]},
    ),
    "digits": Excerpt(
        "Relative error on 400 digits by degree: the literal algorithm, norms preserved, default",
        {
            "degree": "400 digits divided by their mean norm, 1024 features: error by degree",
            "default": "default",
            "none": "without the mean",
            "literal": "the paper's literal sketch",
            "scikit-learn": "`PolynomialCountSketch`",
        },
        {"components": [1024], "degree": [2, 16, 64]},
    ),
    "gaussian": Excerpt(
        "Gaussian kernel: relative error on 800 digits rows",
        {
            "gamma": "800 digits, Gaussian kernel, 1024 features: error by gamma",
            "auto": "`GaussianSketch`",
            "RBFSampler": "`RBFSampler`",
            "orthogonal": "orthogonal random features",
            "Nystroem, 400": "`Nystroem`, 400 features",
        },
    ),
    "tangent": Excerpt(
        "Neural tangent kernels of one hidden layer: relative error on 800 digits rows",
        {
            "kernel": "800 digits of unit norm, neural tangent kernel: error",
            "components": "features",
            "powersketch": "`NeuralTangentSketch`",
            "sketched gradients": "gradients of random networks",
        },
    ),
    "series": Excerpt(
        "Series of the inner product: relative error on 800 digits rows",
        {
            "kernel": "800 digits of unit norm, 1024 features: error for the kernel",
            "truncate": '`tail="truncate"`',
            "fit": '`tail="fit"`',
        },
    ),
    "transform": Excerpt(
        "Transform against scikit-learn's PolynomialCountSketch",
        {
            "data": "4096 × 1024 rows → 1024 features, float32, one thread",
            "degree": "degree",
            "powersketch ms": "`PolynomialSketch`, ms",
            "scikit-learn ms": "`PolynomialCountSketch`, ms",
            "times faster": "times faster",
        },
    ),
    "gaussian_transform": Excerpt(
        "Gaussian features against scikit-learn's RBFSampler",
        {
            "method": "10,000 × 1024 rows → 4096 Gaussian features: `method`",
            "powersketch ms": "`GaussianSketch`, ms",
            "RBFSampler ms": "`RBFSampler`, ms",
            "times faster": "times faster",
        },
        {"method": ["auto", "fourier"]},
    ),
    "one_row": Excerpt(
        "Transform of a single row",
        {"map": "one row, 784 columns → 1024 features", "ms": "ms"},
    ),
    "degree": Excerpt(
        "Transform of long rows against its degree and against copying the input",
        {
            "time of": "1024 × 16,384 rows → 1024 features: time of",
            "over": "over",
            "ratio": "ratio",
        },
    ),
    "threads": Excerpt(
        "Two threads against one",
        {"work": "two threads against one", "times faster": "times faster"},
    ),
    "memory": Excerpt(
        "Peak memory of transform above its input",
        {
            "kernel": "50,000 × 1024 rows → 1024 features",
            "input": "input",
            "output MB": "output, MB",
            "peak above input MB": "peak above the input, MB",
        },
    ),
    "file_streams": Excerpt(
        "Features from file to file against memory and plain writes",
        {
            "map": "`powersketch transform`, 256 columns → 1024 features, thousand rows a second",
            "files in": "files in",
            "GB": "GB",
            "threads": "threads",
            "in memory": "in memory",
            "written": "written without a map",
            "streamed": "streamed",
            "of memory": "of the rate in memory",
            "peak MB": "peak, MB",
        },
        {"files in": ["disk"]},
    ),
    "systems": Excerpt(
        "Gaussian kernel system of Fashion-MNIST",
        {
            "solver": "12,000 Fashion-MNIST rows, Gaussian kernel, residual 1e-6, two cores",
            "seconds": "s",
            "true residual": "true residual",
        },
    ),
    "regressors": Excerpt(
        "Default regressors: R² on rows they have not seen",
        {
            "data": "R² at new rows, mean of five splits",
            "rows": "rows",
            "columns": "columns",
            **_MODELS,
        },
    ),
    "models": Excerpt(
        "Default regressors: R² on rows they have not seen",
        {"data": "R² at new rows, mean of five splits, default parameters", **_MODELS},
        {"data": ["taxi", "diamonds", "flights", "bikes", "earnings", "computers", "companies"]},
    ),
    "classifiers": Excerpt(
        "Default classifiers: accuracy on rows they have not seen",
        {
            "data": "accuracy at new rows, mean of five splits",
            "rows": "rows",
            "columns": "columns",
            **_MODELS,
        },
    ),
    "keel": Excerpt(
        "Default classifiers on the tables of KEEL: mean accuracy and rank",
        {
            "model": "43 tables of KEEL, ten folds each",
            "mean accuracy": "mean accuracy",
            "mean rank": "mean rank",
            "tables where best": "tables where best",
        },
    ),
    "path": Excerpt(
        "Fifty penalties with leave-one-out against one fit",
        {
            "components": "50 penalties with leave-one-out, 50,000 rows: features",
            "one fit s": "one fit, s",
            "path s": "path, s",
            "path / one fit": "ratio",
        },
    ),
    "frontier": Excerpt(
        "Fashion-MNIST, 60000 rows: error against seconds and memory",
        {
            "method": "Fashion-MNIST, 60,000 rows, Gaussian kernel, one alpha, two cores",
            "size": "features",
            "seconds": "s",
            "GB": "GB",
            "error": "error",
        },
        digits=3,
    ),
    "large_features": Excerpt(
        "Fashion-MNIST: many features of a sketch",
        {
            "features": "Fashion-MNIST, 60,000 rows, one alpha: features of a sketch",
            "seconds": "s",
            "GB": "GB",
            "error": "error",
        },
    ),
    "largest": Excerpt(
        "Fashion-MNIST: as many features as fit",
        {
            "method": "Fashion-MNIST, 60,000 rows, one alpha, 24 GB",
            "features": "features",
            "seconds": "s",
            "GB": "GB",
            "error": "error",
        },
        digits=3,
    ),
    "exact": Excerpt(
        "Exact kernel ridge regression on Fashion-MNIST, the matrix recomputed",
        {
            "steps": "60,000 Fashion-MNIST rows, 10 targets, alpha = 1e-6 n, exact kernel: steps",
            "seconds": "s",
            "GB": "GB",
            "residual": "residual",
            "error": "error",
        },
    ),
    "exact_flights": Excerpt(
        "Exact kernel ridge regression on flights, the matrix recomputed",
        {
            "steps": "100,000 flights of 130 columns, alpha = 1e-6 n, exact kernel: steps",
            "seconds": "s",
            "GB": "GB",
            "residual": "residual",
            "error": "error / variance",
        },
    ),
    "million": Excerpt(
        "A million rows by sums in float32",
        {
            "sums": "1,000,000 × 100 float32 rows, 4096 features: sums",
            "seconds": "s",
            "peak MB": "peak, MB",
            "times faster": "times faster",
        },
    ),
    "ten_million": Excerpt(
        "Ten million rows from a memory map",
        {
            "seconds": "10,000,000 × 20 float32 rows, 1024 features: s",
            "least s": "by the rates of the machine, s",
            "share of the limit": "share",
            "peak MB": "peak, MB",
        },
    ),
    "stream": Excerpt(
        "Ridge regression on a stream of rows",
        {
            "rows": "1,000,000 × 100 rows, 2048 features",
            "seconds": "s",
            "peak MB": "peak of the whole process, MB",
        },
    ),
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check only tell whether they are up to date."""
    results, stale = json.loads(RESULTS.read_text("utf-8")), 0
    for page in pages():
        present = page.read_text("utf-8")
        wanted = with_figures(present, results)
        if wanted == present:
            continue
        if arguments == ["--check"]:
            name = page.relative_to(ROOT)
            print(f"{name} does not show the figures of benchmarks/results.json: run make readme")
            stale = 1
        else:
            write_atomically(page, wanted)
    return stale


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def with_figures(text: str, results: Mapping[str, Any]) -> str:
    tables = {table["title"]: table for part in results.values() for table in part["tables"]}

    def filled(place: re.Match[str]) -> str:
        excerpt = EXCERPTS[place[2]]
        return f"{place[1]}{markdown(excerpt, tables[excerpt.title]['rows'])}{place[3]}"

    return _PLACE.sub(filled, text)


def markdown(excerpt: Excerpt, rows: Sequence[Mapping[str, Any]]) -> str:
    chosen = [
        [formatted(row[column], excerpt.digits) for column in excerpt.columns]
        for row in rows
        if all(row[column] in allowed for column, allowed in excerpt.only.items())
    ]
    lines = [list(excerpt.columns.values()), ["---"] * len(excerpt.columns), *chosen]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def formatted(value: Any, digits: int = 2) -> str:
    """Show two or three digits: the next ones differ from run to run."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
