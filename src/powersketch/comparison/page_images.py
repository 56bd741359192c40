"""The exact and the approximate kernels side by side, as images on shared scales."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powersketch.comparison.images import ColourScale
from powersketch.comparison.page_markup import Markup, element, joined, text
from powersketch.comparison.page_methods import Method
from powersketch.comparison.page_numbers import readable
from powersketch.comparison.results import Comparison, Float64

# Colours are spread over what lies between: a few large entries would take them all.
_PERCENTILES = (1.0, 99.0)


def image_section(comparison: Comparison, methods: Sequence[Method]) -> Markup:
    """Return the images of the kernel, the approximations and their differences."""
    exact = comparison.kernel_image
    if exact.size == 0:
        return element("p", text("No kernel has been computed."), class_="quiet")
    shown = [
        (method, comparison.approximate_images[method.name])
        for method in methods
        if method.name in comparison.approximate_images
    ]
    values = ColourScale.sequential(*(float(end) for end in np.percentile(exact, _PERCENTILES)))
    limit = _difference_limit(exact, [image for _, image in shown])
    differences = ColourScale.symmetric(limit)
    return joined(
        _introduction(comparison),
        element(
            "div",
            _scale(values, "Kernel: 98 % of the exact values lie on this scale"),
            _scale(differences, "Approximation minus exact kernel") if shown else Markup(""),
            class_="scales",
        ),
        element(
            "div",
            _exact_figure(exact, values),
            *(
                _pair(method, image, exact, values, differences, comparison.common_components)
                for method, image in shown
            ),
            class_="images",
        ),
    )


def _introduction(comparison: Comparison) -> Markup:
    rows = comparison.kernel_image.shape[0]
    return element(
        "p",
        text(
            f"The kernel matrix of {rows} of the measured rows, with similar rows beside each "
            f"other. Every pair shows an approximation with {comparison.common_components} "
            "components on the left and its difference from the exact kernel on the right. "
            "Values beyond a scale have its last colour. Errors are relative, on these rows."
        ),
    )


def _difference_limit(exact: Float64, images: Sequence[Float64]) -> float:
    """Return the end of the scale of differences: what a middling method needs, and no more.

    One bad method would otherwise make all others look perfect.
    """
    if not images:
        return 1.0
    largest = [float(np.percentile(np.abs(image - exact), _PERCENTILES[1])) for image in images]
    return float(np.median(largest)) or float(max(largest)) or 1.0


def _scale(scale: ColourScale, title: str) -> Markup:
    middle = (scale.low + scale.high) / 2.0
    ends = [element("span", text(readable(end))) for end in (scale.low, middle, scale.high)]
    bar = element(
        "img",
        src=scale.bar(),
        alt=f"Colours from {readable(scale.low)} to {readable(scale.high)}",
    )
    title_line = element("p", text(title), class_="small quiet")
    return element("div", title_line, bar, element("div", *ends), class_="scale")


def _exact_figure(exact: Float64, values: ColourScale) -> Markup:
    low, high = readable(float(exact.min())), readable(float(exact.max()))
    alternative = f"The exact kernel of {exact.shape[0]} rows, with values from {low} to {high}"
    return element(
        "figure",
        element("div", _image(values.image(exact), alternative), class_="pair"),
        element("figcaption", element("strong", text("exact")), text(f", from {low} to {high}")),
    )


def _pair(
    method: Method,
    image: Float64,
    exact: Float64,
    values: ColourScale,
    differences: ColourScale,
    size: int,
) -> Markup:
    off = readable(_relative_error(image, exact))
    left = _image(
        values.image(image), f"The kernel as approximated by {method.name} with {size} components"
    )
    right = _image(
        differences.image(image - exact),
        f"{method.name} minus the exact kernel: relative error {off} on these rows",
    )
    return element(
        "figure",
        element("div", left, right, class_="pair"),
        element("figcaption", element("strong", text(method.name)), text(f", error {off}")),
        class_=method.look.owner,
    )


def _relative_error(image: Float64, exact: Float64) -> float:
    """Return the error in Frobenius norm; squares of large entries would overflow as they are."""
    scale = float(np.abs(exact).max()) or 1.0
    return float(np.linalg.norm((image - exact) / scale) / (np.linalg.norm(exact / scale) or 1.0))


def _image(address: str, alternative: str) -> Markup:
    return element("img", src=address, alt=alternative)
