"""The methods of a page: which ones there are, and what each of them looks like."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from powersketch.comparison.page_looks import Look
from powersketch.comparison.results import Comparison, Measurement

# The default of the library's sketches; the Gaussian one chooses between it and others.
MAIN = "power"


@dataclass(frozen=True)
class Norm:
    """A norm in which errors are measured."""

    name: str
    title: str
    error: Callable[[Measurement], float]


NORMS = (
    Norm("frobenius", "Frobenius norm", lambda found: found.frobenius),
    Norm("operator", "operator norm", lambda found: found.operator_norm),
)


@dataclass(frozen=True)
class Method:
    """One method with its measurements that worked, the smallest size first."""

    name: str
    kind: str
    look: Look
    measurements: tuple[Measurement, ...]


def methods_of(comparison: Comparison) -> tuple[Method, ...]:
    """Return the methods in the order in which they were measured."""
    return tuple(
        _method(comparison, name, number) for number, name in enumerate(comparison.methods)
    )


def _method(comparison: Comparison, name: str, number: int) -> Method:
    own = [found for found in comparison.measurements if found.method == name]
    working = sorted(
        (found for found in own if not found.failed and math.isfinite(found.frobenius)),
        key=lambda found: found.n_components,
    )
    return Method(name, own[0].kind, Look(number, bold=name == MAIN), tuple(working))
