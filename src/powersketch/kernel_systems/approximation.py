"""What every strategy gives: an approximate inverse of K + alpha I, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from powersketch.linalg import CholeskyFactor, LowRankInverse, SquaredFactor


@dataclass(frozen=True, eq=False)
class Approximation:
    """An approximate inverse.

    Parameters
    ----------
    inverse : CholeskyFactor, SquaredFactor or LowRankInverse
        Applies it.
    n_components : int
        Coordinates, features or landmarks that the approximation has.
    nugget : float
        What it has on the diagonal beside the sketch: alpha and what was added to that.
    text : str
        What was approximated, in a few words.
    """

    inverse: CholeskyFactor | SquaredFactor | LowRankInverse
    n_components: int
    nugget: float
    text: str
