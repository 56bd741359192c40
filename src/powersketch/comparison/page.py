"""A comparison as one page of HTML that needs neither a network nor other files."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files

from powersketch.comparison.page_answer import answer_section
from powersketch.comparison.page_figures import (
    error_by_memory,
    error_by_size,
    error_by_time,
    spectrum_figure,
)
from powersketch.comparison.page_images import image_section
from powersketch.comparison.page_markup import Markup, element, joined, text
from powersketch.comparison.page_methods import NORMS, Method, methods_of
from powersketch.comparison.page_table import table_section
from powersketch.comparison.results import Comparison
from powersketch.comparison.tables import INTERRUPTED, exact_line, failure_lines, kernel_text
from powersketch.comparison.writing import replaced


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
    with replaced(path) as unfinished:
        unfinished.write_text(content, encoding="utf-8", newline="\n")


def page_text(comparison: Comparison) -> str:
    """Return the page; the same comparison gives the same text.

    Parameters
    ----------
    comparison : Comparison
        What is shown.

    Returns
    -------
    str
        HTML in which styles, script and images are contained. Without the script everything is
        shown as well, only the table cannot be sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import compare
    >>> from powersketch.comparison.page import page_text
    >>> X = np.random.RandomState(0).rand(40, 5)
    >>> found = compare(X, "gaussian", methods=["fourier"], components=[16], random_state=0)
    >>> page_text(found)[:15]
    '<!DOCTYPE html>'
    """
    methods = methods_of(comparison)
    style, script = _style(methods), _asset("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", text(_title(comparison))),
        # An icon of its own, empty as it is, keeps browsers from asking a server for one.
        element("link", rel="icon", href="data:,"),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        _header(comparison),
        element("main", *_sections(comparison, methods)),
        element("script", Markup(script)),
    )
    page = element("html", head, Markup("\n"), body, lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _asset(name: str) -> str:
    return (files("powersketch.comparison") / name).read_text(encoding="utf-8")


def _style(methods: Sequence[Method]) -> str:
    """Return the style sheet, with a rule for each method that its box in the legend rules."""
    rules = [
        f"body:has(#show-{method.look.number}:not(:checked)) .{method.look.owner} "
        "{ display: none; }"
        for method in methods
    ]
    return "\n".join([_asset("page.css"), *rules, ""])


def _policy(style: str, script: str) -> str:
    """Return the policy that forbids everything but what is in the page."""
    return (
        "default-src 'none'; img-src data:; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _title(comparison: Comparison) -> str:
    return f"Feature maps compared: {kernel_text(comparison)}"


def _header(comparison: Comparison) -> Markup:
    rows, columns = comparison.data_shape
    seeds = f"{comparison.seeds} seed{'s' * (comparison.seeds != 1)}"
    return element(
        "header",
        element("h1", text(_title(comparison))),
        element(
            "p",
            text(
                f"Data of {rows} rows and {columns} columns. Maps were fitted on "
                f"{comparison.fit_rows} rows and measured on {comparison.measured_rows} others; "
                f"every figure is the median of {seeds}. {exact_line(comparison)}"
            ),
            class_="quiet",
        ),
    )


def _sections(comparison: Comparison, methods: Sequence[Method]) -> list[Markup]:
    return [
        _warnings(comparison),
        _section("The answer", element("div", answer_section(comparison), class_="answer")),
        _section(
            "Errors and spectrum",
            _legend(methods),
            _norm_switch(),
            element("div", *_figures(comparison, methods), class_="figures"),
        ),
        _section("The kernel and its approximations", image_section(comparison, methods)),
        _section("All measurements", table_section(comparison)),
    ]


def _figures(comparison: Comparison, methods: Sequence[Method]) -> list[Markup]:
    return [
        *(error_by_size(comparison, methods, norm) for norm in NORMS),
        *(error_by_time(methods, norm) for norm in NORMS),
        *(error_by_memory(comparison, methods, norm) for norm in NORMS),
        spectrum_figure(comparison, methods),
    ]


def _section(title: str, *content: Markup) -> Markup:
    return joined(Markup("\n"), element("section", element("h2", text(title)), *content))


def _warnings(comparison: Comparison) -> Markup:
    lines = failure_lines(comparison)
    if not comparison.complete:
        lines.insert(0, INTERRUPTED)
    if not lines:
        return Markup("")
    entries = [element("li", text(line)) for line in lines]
    return element("div", element("ul", *entries), class_="warning", role="note")


def _legend(methods: Sequence[Method]) -> Markup:
    if not methods:
        return Markup("")
    return element(
        "fieldset",
        element("legend", text("Methods in the figures")),
        element("div", *(_legend_entry(method) for method in methods), class_="legend-entries"),
    )


def _legend_entry(method: Method) -> Markup:
    remark = method.kind if method.measurements else "failed"
    return element(
        "label",
        element("input", type="checkbox", id=f"show-{method.look.number}", checked=True),
        method.look.swatch(),
        element("span", text(method.name)),
        element("span", text(remark), class_="small quiet"),
    )


def _norm_switch() -> Markup:
    choices = [
        element(
            "label",
            element(
                "input",
                type="radio",
                name="norm",
                id=f"norm-{norm.name}",
                checked=norm is NORMS[0],
            ),
            text(norm.title),
        )
        for norm in NORMS
    ]
    return element(
        "fieldset",
        element("legend", text("Norm of the error")),
        element("div", *choices, class_="switch"),
        class_="norms",
    )
