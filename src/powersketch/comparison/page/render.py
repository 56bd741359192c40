"""A comparison as one page of HTML that needs neither a network nor other files."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from powersketch.comparison.page.charts import (
    FRAME,
    NORMS,
    MethodSeries,
    charts,
    method_series,
    pixels,
)
from powersketch.comparison.page.images import kernel_images
from powersketch.comparison.recommend import MAIN_METHOD, answer
from powersketch.comparison.results import Comparison, Measurement, atomic_write
from powersketch.comparison.text import (
    INTERRUPTED,
    MISSING,
    bytes_text,
    exact_line,
    kernel_text,
    note_lines,
    number_text,
    seconds_text,
    seeds_text,
    spread_text,
)


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
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number_text, "pixels": pixels}
    methods = method_series(comparison)
    style, script = _style(methods), _asset("page.js")
    return environment.from_string(_asset("template.html")).render(
        comparison=comparison,
        title=f"Feature maps compared: {kernel_text(comparison.kernel)}",
        seeds=seeds_text(comparison),
        exact_line=exact_line(comparison),
        notes=[INTERRUPTED] * (not comparison.complete) + note_lines(comparison),
        answer=answer(comparison),
        methods=methods,
        norms=NORMS,
        charts=charts(comparison, methods),
        frame=FRAME,
        images=kernel_images(comparison, methods),
        table=_table(comparison),
        main_method=MAIN_METHOD,
        policy=_policy(style, script),
        style=style,
        script=script,
    )


def _asset(name: str) -> str:
    return (files("powersketch.comparison.page") / name).read_text(encoding="utf-8")


def _style(methods: Sequence[MethodSeries]) -> str:
    """Return the style sheet; a method's box in the legend hides everything of that method."""
    rules = [
        f"body:has(#show-{method.number}:not(:checked)) .method-{method.number} "
        "{ display: none; }"
        for method in methods
    ]
    return "\n".join([_asset("page.css"), *rules, ""])


def _policy(style: str, script: str) -> str:
    """Return the policy that forbids everything except the contents of the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


@dataclass(frozen=True)
class Cell:
    """A cell of the table: its column and class, what it shows, and the value to sort rows by."""

    heading: str
    role: str
    text: str
    value: object
    best: bool = False


def _table(comparison: Comparison) -> list[list[Cell]]:
    """Return a row of cells for every measurement; the best of every size are marked."""
    best: dict[int, Measurement] = {}
    for each in comparison.successes:
        if each.n_components not in best or each.frobenius < best[each.n_components].frobenius:
            best[each.n_components] = each
    rows = [_cells(each, each is best.get(each.n_components)) for each in comparison.measurements]
    # The last column is there only if there is something to note.
    return rows if any(row[-1].text for row in rows) else [row[:-1] for row in rows]


def _cells(measurement: Measurement, best: bool) -> list[Cell]:
    error = spread_text(measurement.frobenius, measurement.frobenius_spread)
    low, high = measurement.spectral or (math.nan, math.nan)
    interval = f"[{number_text(low)}, {number_text(high)}]" if measurement.spectral else MISSING
    memory = measurement.memory_bytes or math.nan
    note = " ".join(f"warned: {text}" for text in measurement.warnings)
    if measurement.failed:
        note = f"failed: {measurement.error_message}"
    return [
        Cell("method", "method", measurement.method, measurement.method),
        _number("components", measurement.n_components, str(measurement.n_components)),
        _number("Frobenius error", measurement.frobenius, error, best),
        _number(
            "operator norm error", measurement.operator_norm, number_text(measurement.operator_norm)
        ),
        _number("spectral interval", max(1.0 - low, high - 1.0), interval),
        _number("fit", measurement.fit_seconds, seconds_text(measurement.fit_seconds)),
        _number(
            "transform, per row",
            measurement.seconds_per_row,
            seconds_text(measurement.seconds_per_row),
        ),
        _number("memory", memory, bytes_text(memory)),
        Cell("kind", "", measurement.kind, measurement.kind),
        Cell("note", "note", note, note),
    ]


def _number(heading: str, value: float, text: str, best: bool = False) -> Cell:
    return Cell(heading, "number", text, "" if math.isnan(value) else value, best)
