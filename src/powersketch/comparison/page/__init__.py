"""A comparison as one page of HTML, images included, that needs no network and no other file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from powersketch.arrays import Float64
from powersketch.comparison.page.error_charts import NORMS, MethodSeries, charts, method_series
from powersketch.comparison.recommend import MAIN_METHOD, answer
from powersketch.comparison.results import Comparison, Measurement
from powersketch.comparison.text import (
    INTERRUPTED,
    baseline_line,
    exact_line,
    kernel_text,
    note_lines,
    seeds_text,
)
from powersketch.files import atomic_write
from powersketch.pages import (
    MISSING,
    Cell,
    ColourScale,
    bytes_text,
    number_text,
    rendered,
    seconds_text,
    spread_text,
)

# Colours are spread over the values between these: a few large entries would take them all.
_PERCENTILES = (1.0, 99.0)


def write_page(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the page to a file, which appears under its name when it is complete.

    Parameters
    ----------
    comparison : Comparison
        What is shown.
    path : str or path
        The file; one that is there already is replaced.
    """
    content = page_text(comparison)
    with atomic_write(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")


def page_text(comparison: Comparison) -> str:
    """Return the page; the same comparison gives the same text.

    Parameters
    ----------
    comparison : Comparison
        What is shown.

    Returns
    -------
    str
        HTML that contains its styles, script and images. Without the script everything is shown
        as well, only the table cannot be sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import compare
    >>> from powersketch.comparison.page import page_text
    >>> X = np.random.RandomState(0).rand(40, 5)
    >>> comparison = compare(X, "gaussian", methods=["fourier"], components=[16], random_state=0)
    >>> page_text(comparison)[:15]
    '<!DOCTYPE html>'
    """
    methods = method_series(comparison)
    return rendered(
        "comparison.html",
        __name__,
        rules=_rules(methods),
        comparison=comparison,
        title=f"Feature maps compared: {kernel_text(comparison.kernel)}",
        seeds=seeds_text(comparison),
        exact_line=exact_line(comparison),
        notes=[INTERRUPTED] * (not comparison.complete)
        + [*comparison.remarks]
        + note_lines(comparison),
        answer=answer(comparison),
        baselines=baseline_line(comparison),
        methods=methods,
        norms=NORMS,
        charts=charts(comparison, methods),
        images=kernel_images(comparison, methods),
        table=_table(comparison),
        main_method=MAIN_METHOD,
    )


def _rules(methods: Sequence[MethodSeries]) -> str:
    """Return the rules by which a method's box in the legend hides everything of that method."""
    rules = [
        f"body:has(#show-{method.look.number}:not(:checked)) .method-{method.look.number} "
        "{ display: none; }"
        for method in methods
    ]
    return "\n".join([*rules, ""])


def _table(comparison: Comparison) -> list[list[Cell]]:
    """Return a row of cells for every measurement; the best of every size are marked."""
    best: dict[int, Measurement] = {}

    def error(each: Measurement) -> float:
        return each.prediction_error if comparison.task else each.frobenius

    for each in comparison.successes:
        if each.n_components not in best or error(each) < error(best[each.n_components]):
            best[each.n_components] = each
    rows = [
        _cells(each, comparison.task, each is best.get(each.n_components))
        for each in comparison.measurements
    ]
    # The last column is there only if there is something to note.
    return rows if any(row[-1].text for row in rows) else [row[:-1] for row in rows]


def _cells(measurement: Measurement, task: str | None, best: bool) -> list[Cell]:
    error = spread_text(measurement.frobenius, measurement.frobenius_spread)
    low, high = measurement.spectral or (math.nan, math.nan)
    interval = f"[{number_text(low)}, {number_text(high)}]" if measurement.spectral else MISSING
    memory, seconds = measurement.memory_bytes or math.nan, measurement.seconds_per_row
    predicted = measurement.prediction_error
    predictions = (("prediction error", predicted, number_text(predicted)),) if task else ()
    marked = ("prediction error" if task else "Frobenius error") if best else None
    note = " ".join(f"warned: {text}" for text in measurement.warnings)
    if measurement.failed:
        note = f"failed: {measurement.error_message}"
    numbers = (
        ("components", measurement.n_components, str(measurement.n_components)),
        *predictions,
        ("Frobenius error", measurement.frobenius, error),
        ("operator norm error", measurement.operator_norm, number_text(measurement.operator_norm)),
        ("spectral interval", max(1.0 - low, high - 1.0), interval),
        ("fit", measurement.fit_seconds, seconds_text(measurement.fit_seconds)),
        ("transform, per row", seconds, seconds_text(seconds)),
        ("memory", memory, bytes_text(memory)),
    )
    return [
        Cell("method", "method", measurement.method, measurement.method),
        *(
            Cell(heading, "number", text, "" if math.isnan(value) else value, heading == marked)
            for heading, value, text in numbers
        ),
        Cell("kind", "", measurement.kind, measurement.kind),
        Cell("note", "note", note, note),
    ]


@dataclass(frozen=True)
class KernelPair:
    """The images of an approximation and of its difference from the exact kernel.

    Differences have a scale of their own, from −limit to limit: on a common one, all but the
    median method would be blank or saturated.
    """

    method: MethodSeries
    approximation: str
    difference: str
    limit: float
    error: float


@dataclass(frozen=True, eq=False)
class KernelImages:
    """All images of a page, on one scale for kernels and the colours of differences."""

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
    values = ColourScale.sequential(*(float(end) for end in np.percentile(exact, _PERCENTILES)))
    pairs = tuple(
        _kernel_pair(method, images[method.name], exact, values)
        for method in methods
        if method.name in images
    )
    low, high = float(exact.min()), float(exact.max())
    colours = ColourScale.symmetric(1.0)
    return KernelImages(values.image(exact), low, high, values, colours, pairs)


def _kernel_pair(
    method: MethodSeries, image: Float64, exact: Float64, values: ColourScale
) -> KernelPair:
    limit = float(np.percentile(np.abs(image - exact), _PERCENTILES[1])) or 1.0
    difference = ColourScale.symmetric(limit).image(image - exact)
    return KernelPair(method, values.image(image), difference, limit, _relative_error(image, exact))


def _relative_error(image: Float64, exact: Float64) -> float:
    """Return the error in Frobenius norm; squares of large entries would overflow unscaled."""
    scale = float(np.abs(exact).max()) or 1.0
    return float(np.linalg.norm((image - exact) / scale) / (np.linalg.norm(exact / scale) or 1.0))
