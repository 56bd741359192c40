"""How many features each degree of the expansion around the mean receives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powersketch.powers import Slice, monomial_count

# Each sketched degree costs an application of S; lighter ones beyond these are left out, and the
# row's norm is made up for by the others.
_MOST_SKETCHED_DEGREES = 24
_SMALLEST_BLOCK = 2


@dataclass(frozen=True, eq=False)
class SplitSizes:
    """The layout of the features: degree 0, degree 1, exact degrees 2 … , sketched degrees.

    `coordinates` have a feature of their own in degree 1, all others share `shared` features.
    """

    coordinates: NDArray[np.int64]
    shared: int
    exact: dict[int, int] = field(default_factory=dict)
    sketched: dict[int, int] = field(default_factory=dict)

    @property
    def linear(self) -> int:
        """The number of features of degree 1."""
        return len(self.coordinates) + self.shared

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Every degree that has features, in the order of the layout."""
        linear = [1] if self.linear else []
        return np.array([0, *linear, *self.exact, *self.sketched], dtype=np.int64)

    @property
    def stop(self) -> int:
        """One past the last column in use."""
        return self.offset(int(self.degrees[-1]) + 1)

    def slices(self) -> dict[int, Slice]:
        """Return rows of S for every sketched degree, none of them used twice.

        Degrees that shared rows would have correlated errors: these add up, others average out.
        """
        slices, start = {}, 0
        for degree, width in self.sketched.items():
            slices[degree] = Slice(start, width, self.offset(degree))
            start += width
        return slices

    def offset(self, degree: int) -> int:
        """Return the first column of a degree."""
        widths = {0: 1, 1: self.linear, **self.exact, **self.sketched}
        return sum(width for other, width in widths.items() if other < degree)


def choose_sizes(
    weights: NDArray[np.float64], energies: NDArray[np.float64], columns: int, size: int
) -> SplitSizes:
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
        The number of coordinates of x⊥.
    size : int
        The number of features, at least 3.
    """
    order = np.argsort(-energies, kind="stable")
    kept, linear_error = _best_coordinates(weights, energies[order], size)
    levels, exact_error = _best_exact_degree(weights, columns, size)
    if levels >= 2 and exact_error < linear_error:
        exact = {level: monomial_count(columns, level) for level in range(2, levels + 1)}
        sketched = _share(weights, levels + 1, size - 1 - columns - sum(exact.values()))
        return SplitSizes(order, 0, exact, sketched)
    total = float(energies.sum())
    rest = float(energies[order[kept:]].sum()) / total if total > 0 else 1.0
    remaining = weights.copy()
    remaining[1] *= rest if kept < columns else 0.0
    sketched = _share(remaining, 1, size - 1 - kept)
    shared = sketched.pop(1, 0)
    if kept + shared == 0:
        return SplitSizes(order[:0], 0, {}, sketched)
    if shared == 0 and kept < columns:  # the remaining coordinates must go somewhere
        shared, kept = 1, min(kept, size - 2 - sum(sketched.values()))
    return SplitSizes(order[:kept], shared, {}, sketched)


def _best_coordinates(
    weights: NDArray[np.float64], sorted_energies: NDArray[np.float64], size: int
) -> tuple[int, float]:
    """Return how many coordinates of degree 1 to take exactly, and the predicted squared error."""
    total = float(sorted_energies.sum())
    most = min(len(sorted_energies), size - 2)
    captured = np.concatenate([[0.0], np.cumsum(sorted_energies)])[: most + 1]
    rest = 1.0 - captured / total if total > 0 else np.ones(most + 1)
    if most == len(sorted_energies):
        rest[-1] = 0.0
    higher = float(weights[2:].sum())
    errors = (weights[1] * rest + higher) ** 2 / (size - 1 - np.arange(most + 1))
    best = int(np.argmin(errors))
    return best, float(errors[best])


def _best_exact_degree(weights: NDArray[np.float64], columns: int, size: int) -> tuple[int, float]:
    """Return up to which degree all monomials are taken, and the predicted squared error."""
    best, best_error, used = 0, np.inf, 1
    for level in range(1, len(weights)):
        used += monomial_count(columns, level)
        rest = float(weights[level + 1 :].sum())
        if used > size or (used == size and level + 1 < len(weights)):
            break
        error = rest**2 / (size - used) if rest else 0.0
        if error < best_error:
            best, best_error = level, error
    return best, best_error


def _share(weights: NDArray[np.float64], lowest: int, budget: int) -> dict[int, int]:
    """Share a budget among the degrees from `lowest` on in proportion to their weights."""
    degrees = np.arange(lowest, len(weights))
    degrees = degrees[weights[degrees] > 0]
    heaviest = np.argsort(-weights[degrees], kind="stable")[:_MOST_SKETCHED_DEGREES]
    degrees = np.sort(degrees[heaviest])
    while len(degrees):
        sizes = np.floor(budget * weights[degrees] / weights[degrees].sum()).astype(np.int64)
        large = sizes >= _SMALLEST_BLOCK
        if large.all():
            sizes[np.argmax(weights[degrees])] += budget - sizes.sum()
            return dict(zip(degrees.tolist(), sizes.tolist(), strict=True))
        if not large.any():
            return {int(degrees[np.argmax(weights[degrees])]): budget} if budget else {}
        degrees = degrees[large]
    return {}
