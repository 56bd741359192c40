"""How many features each degree of a sum of powers receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Vector
from powersketch.powers import Slice, monomial_count
from powersketch.storable import storable

# Each sketched degree costs an application of S; lighter ones beyond these are left out, and the
# row's norm is made up for by the others.
_MOST_SKETCHED_DEGREES = 24
_SMALLEST_BLOCK = 2
_SMALLEST_SHARE = 1 / 512  # of the budget


# Not frozen, as nothing else could be worked out at the start; it is never changed.
@storable
@dataclass(eq=False, repr=False)
class StackedSizes:
    """The layout of the features: constants, degree 1, exact degrees, sketched degrees, others.

    `coordinates` have a feature of their own in degree 1, all others share `shared` features.
    `others` are terms that come after all degrees, by their number.

    Degrees are to have no rows of S in common: errors that are correlated add up, others average
    out. `slices` says which rows of S each sketched degree takes, and `other_slices` which ones of
    an S of their own the other terms take.
    """

    coordinates: NDArray[np.int64]
    shared: int
    exact: dict[int, int] = field(default_factory=dict)
    sketched: dict[int, int] = field(default_factory=dict)
    others: dict[int, int] = field(default_factory=dict)
    constants: int = 1

    def __post_init__(self) -> None:
        self.linear = len(self.coordinates) + self.shared  # the number of features of degree 1
        # Every degree above 0 that has features, in the order of the layout.
        self.degrees = [*([1] if self.linear else []), *self.exact, *self.sketched]
        widths = {0: self.constants, 1: self.linear, **self.exact, **self.sketched}
        ends = list(accumulate(widths.values()))
        self.offsets = dict(zip(widths, (0, *ends), strict=False))  # the first column of a degree
        first = self.offsets[min(self.sketched)] if self.sketched else 0
        self.slices = _side_by_side(self.sketched, first)
        self.other_slices = _side_by_side(self.others, ends[-1])
        self.stop = ends[-1] + sum(self.others.values())  # one past the last column in use


def _side_by_side(widths: Mapping[int, int], column: int) -> dict[int, Slice]:
    slices, start = {}, 0
    for term, width in widths.items():
        slices[term] = Slice(start, width, column + start)
        start += width
    return slices


def choose_sizes(
    weights: Vector,
    energies: Vector,
    columns: int,
    size: int,
    *,
    constants: int = 1,
    others: Vector | None = None,
) -> StackedSizes:
    """Minimise the predicted error over the choices of what to take exactly.

    A degree of weight w sketched with m features has an error of variance w²/m, so that a budget
    m is best shared in proportion to the weights and leaves an error of (Σ w)²/m. Taking the k
    strongest coordinates of degree 1 exactly, or all monomials up to some degree, removes their
    weight and their number from that fraction.

    Parameters
    ----------
    weights : array of shape (degree + 1,)
        Mean share of every degree in the kernel's diagonal.
    energies : array of shape (columns,)
        How the weight of degree 1 is distributed over the coordinates.
    columns : int
        The number of coordinates of the rows whose powers are taken.
    size : int
        The number of features; degree 0 comes first.
    constants : int, default=1
        The number of features of degree 0.
    others : array or None
        Mean shares of terms that can only be sketched.
    """
    others = np.empty(0) if others is None else others
    budget, outside = size - constants, float(others.sum())
    order = np.argsort(-energies, kind="stable")
    if budget <= 0:
        return StackedSizes(order[:0], 0, constants=size)
    kept, linear_error = _best_coordinates(weights, energies[order], budget, outside)
    levels, exact_error = _best_exact_degree(weights, columns, budget, outside)
    if levels >= 2 and exact_error < linear_error:
        exact = _exact_widths(weights, columns, levels)
        linear = order if weights[1] > 0 else order[:0]
        rest = budget - len(linear) - sum(exact.values())
        sketched, further = _share(weights, others, levels + 1, rest)
        return StackedSizes(linear, 0, exact, sketched, further, constants)
    total = float(energies.sum())
    rest_share = float(energies[order[kept:]].sum()) / total if total > 0 else 1.0
    remaining = weights.copy()
    remaining[1:2] *= rest_share if kept < columns else 0.0
    sketched, further = _share(remaining, others, 1, budget - kept)
    shared = sketched.pop(1, 0)
    if kept + shared == 0:
        return StackedSizes(order[:0], 0, {}, sketched, further, constants)
    if shared == 0 and kept < columns:  # the remaining coordinates must go somewhere
        used = sum(sketched.values()) + sum(further.values())
        shared, kept = 1, min(kept, budget - 1 - used)
    return StackedSizes(order[:kept], shared, {}, sketched, further, constants)


def _best_coordinates(
    weights: Vector,
    sorted_energies: Vector,
    budget: int,
    outside: float,
) -> tuple[int, float]:
    """Return how many coordinates of degree 1 to take exactly, and the predicted squared error."""
    total = float(sorted_energies.sum())
    most = min(len(sorted_energies), budget - 1)
    captured = np.concatenate([[0.0], np.cumsum(sorted_energies)])[: most + 1]
    rest = 1.0 - captured / total if total > 0 else np.ones(most + 1)
    if most == len(sorted_energies):
        rest[-1] = 0.0
    linear, higher = float(weights[1:2].sum()), float(weights[2:].sum()) + outside
    errors = (linear * rest + higher) ** 2 / (budget - np.arange(most + 1))
    best = int(np.argmin(errors))
    return best, float(errors[best])


def _best_exact_degree(
    weights: Vector, columns: int, budget: int, outside: float
) -> tuple[int, float]:
    """Return up to which degree all monomials are taken, and the predicted squared error."""
    best, best_error, used = 0, np.inf, 0
    for level in (np.flatnonzero(weights[1:]) + 1).tolist():
        used += monomial_count(columns, level)
        rest = float(weights[level + 1 :].sum()) + outside
        if used > budget or (used == budget and rest > 0):
            break
        error = rest**2 / (budget - used) if rest else 0.0
        if error < best_error:
            best, best_error = level, error
    return best, best_error


def _exact_widths(weights: Vector, columns: int, levels: int) -> dict[int, int]:
    present = (level for level in range(2, levels + 1) if weights[level] > 0)
    return {level: monomial_count(columns, level) for level in present}


def _share(
    weights: Vector, others: Vector, lowest: int, budget: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Share a budget among the degrees from `lowest` on, and the others, by their weights."""
    count = len(weights)
    shared = _in_proportion(np.concatenate([weights, others]), lowest, budget)
    sketched = {degree: size for degree, size in shared.items() if degree < count}
    return sketched, {term - count: size for term, size in shared.items() if term >= count}


def _in_proportion(weights: Vector, lowest: int, budget: int) -> dict[int, int]:
    terms = np.arange(lowest, len(weights))
    terms = terms[weights[terms] > 0]
    heaviest = np.argsort(-weights[terms], kind="stable")[:_MOST_SKETCHED_DEGREES]
    terms = np.sort(terms[heaviest])
    smallest = max(_SMALLEST_BLOCK, budget * _SMALLEST_SHARE)
    while len(terms):
        sizes = np.floor(budget * weights[terms] / weights[terms].sum()).astype(np.int64)
        large = sizes >= smallest
        if large.all():
            sizes[np.argmax(weights[terms])] += budget - sizes.sum()
            return dict(zip(terms.tolist(), sizes.tolist(), strict=True))
        if not large.any():
            return {int(terms[np.argmax(weights[terms])]): budget} if budget else {}
        terms = terms[large]
    return {}
