"""Random choices of positions whose probabilities follow weights."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Vector
from powersketch.random_streams import RandomStreams

Indices: TypeAlias = NDArray[np.int64]


def weighted_sample(streams: RandomStreams, name: str, weights: Vector, count: int) -> Indices:
    """Return distinct positions, drawn one after the other in proportion to their weights [ES06].

    Parameters
    ----------
    streams : RandomStreams
        Where the random numbers come from.
    name : str
        Name of the stream.
    weights : ndarray of shape (n,)
        Not negative. Positions of weight zero are drawn when no others are left.
    count : int
        At most n.

    Returns
    -------
    ndarray of shape (count,)
        Ascending.
    """
    uniform = _uniform(streams, name, weights.size)
    # The largest u^(1/w) win; their logarithms keep apart what tiny weights would round to zero.
    keys = np.full(weights.size, -np.inf)
    np.divide(np.log(uniform), weights, out=keys, where=weights > 0.0)
    ranking: Indices = np.lexsort((uniform, keys))
    return np.sort(ranking[weights.size - count :])


def thinned(
    streams: RandomStreams, name: str, probabilities: Vector, most: int
) -> tuple[Indices, Vector]:
    """Keep positions independently of each other, about `most` of them at most, and weight them.

    Parameters
    ----------
    streams : RandomStreams
        Where the random numbers come from.
    name : str
        Name of the stream.
    probabilities : ndarray of shape (n,)
        In [0, 1]; lowered by a common factor where more than `most` are expected to be kept.
    most : int
        Also how many are drawn uniformly where none is kept.

    Returns
    -------
    kept : ndarray of shape (m,)
        Ascending.
    weights : ndarray of shape (m,)
        One over the root of the probability, so that the expectation of the weighted columns
        times themselves is that of all columns.
    """
    uniform = _uniform(streams, name, probabilities.size)
    probabilities = probabilities * min(most / max(float(probabilities.sum()), 1e-300), 1.0)
    kept: Indices = np.flatnonzero(uniform < probabilities)
    if kept.size == 0:
        kept = np.sort(np.argsort(uniform, kind="stable")[:most])
        probabilities = np.full(probabilities.size, kept.size / probabilities.size)
    return kept, probabilities[kept] ** -0.5


def _uniform(streams: RandomStreams, name: str, count: int) -> Vector:
    """Return independent numbers inside (0, 1)."""
    # The largest numbers would be rounded to one.
    uniform: Vector = np.minimum(streams.uniforms(name, count) + 2.0**-54, 1.0 - 2.0**-53)
    return uniform
