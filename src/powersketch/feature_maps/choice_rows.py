"""The rows that choices are made from where there are very many: a sample, and the longest row.

Which rows are in it depends on their numbers only: a fit is the same whether rows are in memory or
in blocks elsewhere, however they are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch import routines
from powersketch.arrays import Rows, Vector, is_sparse
from powersketch.feature_maps.pilot import absurd_distances, warn_of_far_rows, without_rows
from powersketch.kernels import EntryMoments
from powersketch.random_streams import RandomStreams

MOST_CHOICE_ROWS = 1 << 16
"""Kernels, landmarks and models are chosen on at most this many rows, and the longest one."""

MOST_MAP_ROWS = 1 << 14
"""A sketch is drawn with at most this many rows in view, and the longest one."""


def are_many(rows: int, most: int) -> bool:
    """Tell whether choices are made on a part of the rows only."""
    return rows > most + 1


def spread_numbers(total: int, most: int) -> NDArray[np.int64]:
    """Return `most` of the numbers 0 … total − 1, ascending: one of each of as many equal parts.

    All numbers are returned where there are not more, and one more than `most` is not more.
    """
    if not are_many(total, most):
        return np.arange(total, dtype=np.int64)
    ends = np.arange(most + 1, dtype=object) * total // most
    starts, widths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.uint64)
    words = RandomStreams(0, "choice-rows").words(str(most), most)
    offsets = ((words >> np.uint64(32)) * widths) >> np.uint64(32)
    return starts + offsets.astype(np.int64)


@dataclass(frozen=True, eq=False)
class ChoiceRows:
    """Rows of one or more blocks, in their order, that choices for all rows are made from.

    `numbers` are those of the rows among all. `longest` is the place of the longest one; it is
    there only for its length, unless it was `drawn`. Rows absurdly far from the others of their
    block are left out: their numbers and distances are in `far` and `ratios`. Where they were
    measured, `moments` are those of the entries of all other rows, drawn or not.
    """

    rows: Rows
    numbers: NDArray[np.int64]
    longest: int
    drawn: bool
    far: NDArray[np.intp]
    ratios: Vector
    moments: EntryMoments | None = None

    @classmethod
    def of(
        cls,
        X: Rows,
        numbers: NDArray[np.int64],
        total: int,
        most: int,
        *,
        measure: bool = False,
        weights: Vector | None = None,
    ) -> Self:
        """Take those of some checked rows, which have these numbers among `total`."""
        far, ratios = absurd_distances(X)
        drawn = np.flatnonzero(np.isin(numbers, spread_numbers(total, most), assume_unique=True))
        places = np.setdiff1d(drawn, far)
        norms = routines.squared_norms(X)
        norms[far] = -1.0
        longest = int(np.argmax(norms))
        is_drawn = longest in places
        places = places if is_drawn else np.union1d(places, [longest])
        rows = X[places]
        return cls(
            np.ascontiguousarray(rows) if isinstance(X, np.ndarray) else rows,
            numbers[places],
            int(np.searchsorted(places, longest)),
            is_drawn,
            numbers[far].astype(np.intp),
            ratios,
            _moments(X, weights, far) if measure else None,
        )

    @classmethod
    def of_all(cls, X: Rows, most: int, *, measure: bool = False) -> Self:
        """Take those of all rows, which are in memory."""
        return cls.of(X, np.arange(X.shape[0]), X.shape[0], most, measure=measure)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """Return those of several blocks, in the order of the blocks: one longest row is left."""
        norms = [float(routines.squared_norms(part.rows[[part.longest]])[0]) for part in parts]
        winner = int(np.argmax(norms))
        kept = [part._without_extra() if i != winner else part for i, part in enumerate(parts)]
        before = sum(part.numbers.size for part in kept[:winner])
        stack = sparse.vstack if is_sparse(parts[0].rows) else np.concatenate
        rows: Rows = stack([part.rows for part in kept])
        moments = [part.moments for part in parts if part.moments is not None]
        return cls(
            rows.tocsr() if is_sparse(rows) else rows,
            np.concatenate([part.numbers for part in kept]),
            before + kept[winner].longest,
            kept[winner].drawn,
            np.concatenate([part.far for part in kept]),
            np.concatenate([part.ratios for part in kept]),
            EntryMoments.merged(moments) if moments else None,
        )

    def _without_extra(self) -> Self:
        if self.drawn:
            return self
        kept = np.delete(np.arange(self.numbers.size), self.longest)
        return replace(self, rows=self.rows[kept], numbers=self.numbers[kept], drawn=True)

    @property
    def ordinary(self) -> Rows:
        """The rows without those absurdly far from all of them, which no single block can tell."""
        return without_rows(self.rows, absurd_distances(self.rows)[0])

    def warn_of_far_rows(self, fate: str) -> None:
        """Name the rows that were left out, if any."""
        if self.far.size:
            warn_of_far_rows(self.far, self.ratios, fate)


def _moments(X: Rows, weights: Vector | None, far: NDArray[np.intp]) -> EntryMoments:
    if not far.size:
        return EntryMoments.of(X, weights)
    return EntryMoments.of(
        without_rows(X, far), None if weights is None else np.delete(weights, far)
    )
