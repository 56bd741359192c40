"""Ridge leverage scores ℓ_i = (K (K + αI)⁻¹)_ii of the rows, and landmarks drawn by them.

The scores say how much a row adds to what the others span: one far from all others has a score near
one, and the rows of a dense cluster share theirs. Nothing here holds more than a few blocks of K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Rows, Vector, slices
from powersketch.execution import blas_threads, interruptible, ordered_map
from powersketch.kernels import Kernel
from powersketch.linalg import TriangularRows, jittered_cholesky
from powersketch.parameters import one_of
from powersketch.random_streams import RandomStreams

Indices: TypeAlias = NDArray[np.int64]

LANDMARKS = ("leverage", "approximate-leverage", "uniform")
"""What landmarks can be drawn by."""

# Scores are estimated from at most this many columns, as the cost grows with the square of the
# number. The landmarks are hardly worse than those drawn by scores from all columns.
_MOST_COLUMNS = 512
# In units of the mean of the diagonal: with smaller ridges, scores drown in rounding errors.
_SMALLEST_RIDGE = 1e-9
_JITTER = 1e-12
# Scores of float32 rows are computed in float32 if those of the sample change by no more than this
# share of their mean; where rows are many times as many, that is worth finding out.
_LARGEST_ERROR = 1e-3
_TIMES_AS_MANY = 8
_LARGEST_OF_FLOAT32 = 1e30  # of the diagonal, which weights multiply
_BLOCK_BYTES = 16 << 20
_MOST_BLOCK_ROWS = 4096


def draw_landmarks(
    kernel: Kernel,
    X: Rows,
    size: int,
    streams: RandomStreams,
    *,
    landmarks: str = "leverage",
    alpha: float | None = None,
    threads: int = 1,
    diagonal: Vector | None = None,
) -> tuple[Indices, Vector]:
    """Draw rows that stand for all others.

    Parameters
    ----------
    kernel : Kernel
        One of powersketch.kernels.
    X : ndarray or CSR of shape (n, d)
        Checked rows.
    size : int
        Number of landmarks.
    streams : RandomStreams
        Where the random numbers come from.
    landmarks : {"leverage", "approximate-leverage", "uniform"}, default="leverage"
        What they are drawn by; see :class:`LeverageScores`.
    alpha : float, default=None
        The ridge of the scores, positive. None takes the sum of the eigenvalues after the first k,
        divided by k = size / (4 ln size): the smallest for which this many landmarks suffice.
    threads : int, default=1
        How many work at a time.
    diagonal : ndarray of shape (n,), default=None
        All k(x, x), where they are known already.

    Returns
    -------
    indices : ndarray of shape (min(size, n),)
        Of the landmarks, ascending and distinct.
    scores : ndarray of shape (n,)
        The estimated scores of all rows, in [0, 1]; one for all where every row is a landmark, and
        the share of landmarks among the rows where they are drawn uniformly.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.nystroem import draw_landmarks
    >>> from powersketch.kernels import Gaussian
    >>> from powersketch.random_streams import RandomStreams
    >>> X = np.zeros((100, 2))
    >>> X[40] = 5.0
    >>> 40 in draw_landmarks(Gaussian(), X, 2, RandomStreams(0))[0]
    True
    """
    rows = X.shape[0]
    if one_of("landmarks", landmarks, LANDMARKS) == "uniform" or size >= rows:
        count = min(size, rows)
        return np.sort(streams.sample("landmarks", rows, count)), np.full(rows, count / rows)
    estimate = LeverageScores(kernel, X, size, streams, alpha, threads, diagonal)
    scores = estimate.recursive() if landmarks == "leverage" else estimate.approximate()
    return weighted_sample(streams, "landmarks", scores, size), scores


@dataclass(frozen=True, eq=False)
class LeverageScores:
    """Estimates the scores of all rows, to draw fewer landmarks than rows by them.

    The parameters are those of :func:`draw_landmarks`.
    """

    kernel: Kernel
    X: Rows
    size: int
    streams: RandomStreams
    alpha: float | None = None
    threads: int = 1
    diagonal: Vector | None = None

    def recursive(self) -> Vector:
        """Return recursive ridge leverage scores ([MM17], Algorithm 2, of fixed size).

        A uniform half of the rows is scored first, by the same method. Rows drawn by these scores,
        and weighted by them, stand for all rows when the other half is scored.
        """
        order = self.streams.permutation("order", self.X.shape[0])
        shortest, *longer = _prefix_lengths(self.X.shape[0], self._most)
        sample, weights, scores = order[:shortest], np.ones(shortest), np.empty(0)
        for length in longer:
            rows = np.sort(order[:length])
            scores = self._unexplained_shares(sample, weights, rows)
            probabilities = np.minimum(_oversampling(self._most) * scores, 1.0)
            name = f"sample of {length}"
            kept, weights = thinned(self.streams, name, probabilities, self._most)
            sample = rows[kept]
        return scores

    def approximate(self) -> Vector:
        """Return the scores of a first Nyström approximation ([AM15], Theorem 4).

        Its columns are drawn with probabilities in proportion to the diagonal. These scores are
        never too large, but far too small for rows that the first columns missed.
        """
        sample = weighted_sample(self.streams, "columns", self._diagonal, self._most)
        entries, weights = self._diagonal[sample], np.ones(self._most)
        # A column whose diagonal entry is zero is zero, whatever its weight.
        np.divide(self._diagonal.sum() / self._most, entries, out=weights, where=entries > 0.0)
        return self._scores_of_features(sample, np.sqrt(weights))

    @cached_property
    def _diagonal(self) -> Vector:
        return precise_diagonal(self.kernel, self.X) if self.diagonal is None else self.diagonal

    @property
    def _most(self) -> int:
        """How many columns the scores are estimated from at most."""
        return min(self.size, _MOST_COLUMNS)

    def _square(self, sample: Indices, weights: Vector) -> Real:
        """Return the columns k(·, x_i) of a sample at its rows, weighted from both sides."""
        square = self.kernel(self.X[sample], dtype=np.float64, n_jobs=self.threads)
        square *= np.outer(weights, weights)
        return square

    def _map(
        self,
        function: Callable[[Real], Real],
        sample: Indices,
        weights: Vector,
        rows: Indices,
        precision: type = np.float64,
    ) -> Iterator[Real]:
        """Yield what the function makes of the weighted columns at one block of rows after another.

        The function may write to its block.
        """
        parts, dtype = slices(rows.size, _block_rows(sample.size)), np.dtype(precision)
        values = self.kernel.columns(self.X[sample], precision=dtype)
        weights = weights.astype(dtype)

        def computed(part: slice) -> Real:
            block = values(self.X[rows[part]], dtype)
            block *= weights
            return function(block)

        return ordered_map(computed, parts, self.threads)

    def _unexplained_shares(self, sample: Indices, weights: Vector, rows: Indices) -> Vector:
        """Return (k(x, x) − c (S + λI)⁻¹ cᵀ) / λ for every row x ([MM17], Lemma 6).

        The c are the row's values in the weighted columns, and S is their square: what the sample
        does not explain of a row is what the row adds to it.
        """
        square = self._square(sample, weights)
        ridge = self._ridge(square)
        np.fill_diagonal(square, square.diagonal() + ridge)
        solver = TriangularRows.of(jittered_cholesky(square, 0.0)[0])
        explained = partial(self._explained, solver, sample, weights)
        many = rows.size > _TIMES_AS_MANY * sample.size
        single = many and self.X.dtype == np.float32 and self._single_suffices(explained, sample)
        known = explained(rows, np.float32 if single else np.float64)
        scores: Vector = np.clip((self._diagonal[rows] - known) / ridge, 0.0, 1.0)
        return scores

    def _single_suffices(self, explained: Callable[..., Vector], sample: Indices) -> bool:
        """Whether float32 changes what a sample explains of itself by next to nothing."""
        if self._diagonal.max() > _LARGEST_OF_FLOAT32:
            return False
        exact = explained(sample)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(explained(sample, np.float32) - exact).max()
        # Where numbers are too large for float32 the error is NaN, and not small.
        return bool(error <= _LARGEST_ERROR * np.mean(self._diagonal[sample] - exact))

    def _explained(
        self,
        solver: TriangularRows,
        sample: Indices,
        weights: Vector,
        rows: Indices,
        precision: type = np.float64,
    ) -> Vector:
        """Return ‖L⁻¹ cᵀ‖² for the weighted values c of every row in the columns of a sample."""
        factor = solver.in_float32 if precision == np.float32 else solver

        def squares(block: Real) -> Real:
            factor.solve(block)
            return _squared_norms(block)

        parts = self._map(squares, sample, weights, rows, precision)
        return np.concatenate(list(parts)).astype(np.float64)

    def _scores_of_features(self, sample: Indices, weights: Vector) -> Vector:
        """Return b (BᵀB + λI)⁻¹ bᵀ for every row b of the Nyström features B."""
        square = self._square(sample, weights)
        ridge = self._ridge(square)
        inner = TriangularRows.of(jittered_cholesky(square, _JITTER)[0])
        rows = np.arange(self.X.shape[0])

        def gram(block: Real) -> Float64:
            inner.solve(block)
            return block.T @ block

        total = sum(self._map(gram, sample, weights, rows), start=np.zeros_like(square))
        np.fill_diagonal(total, total.diagonal() + ridge)
        outer = TriangularRows.of(jittered_cholesky(total, 0.0)[0])

        def score(block: Real) -> Vector:
            inner.solve(block)
            outer.solve(block)
            return _squared_norms(block)

        scores: Vector = np.concatenate(list(self._map(score, sample, weights, rows)))
        return scores.clip(0.0, 1.0)

    def _ridge(self, square: Real) -> float:
        """Return the ridge in use: alpha, or what the leading eigenvalues leave, in equal parts."""
        smallest = _SMALLEST_RIDGE * (float(self._diagonal.mean()) or 1.0)
        if self.alpha is not None:
            return max(self.alpha, smallest)
        rank = _rank(self.size, self._most)
        # Several threads are slower on a matrix of this size, and far slower on a busy machine.
        with blas_threads(1):
            eigenvalues = interruptible(lambda: np.linalg.eigvalsh(square))
        tail = float(eigenvalues[: max(eigenvalues.size - rank, 0)].sum())
        return max(tail / rank, smallest)


def precise_diagonal(kernel: Kernel, X: Rows) -> Vector:
    """Return all k(x_i, x_i) in float64, even where the rows are float32."""
    if X.dtype == np.float64:
        return kernel.diagonal(X)
    blocks = slices(X.shape[0], _block_rows(X.shape[1]))
    parts = [kernel.diagonal(X[part].astype(np.float64)) for part in blocks]
    diagonal: Vector = np.concatenate(parts)
    return diagonal


def _prefix_lengths(count: int, most: int) -> list[int]:
    """Return the lengths of the recursion's prefixes: halves of halves, from short to long."""
    lengths = [count]
    while lengths[-1] > most:
        lengths.append(-(-lengths[-1] // 2))
    return lengths[::-1]


def _oversampling(size: int) -> float:
    return max(math.log(size), 1.0)


def _rank(size: int, most: int) -> int:
    """Return how many directions `size` landmarks can tell apart ([MM17]).

    The columns that scores are estimated from must tell them apart as well: if they are many fewer
    than the landmarks, one direction for eight columns is still safe.
    """
    return min(math.ceil(size / (4.0 * _oversampling(size))), max(most // 8, 1))


def _squared_norms(block: Real) -> Real:
    norms: Real = np.einsum("ij,ij->i", block, block)
    return norms


def _block_rows(columns: int) -> int:
    """Return how many rows a block of kernel values may have; they are computed in float64."""
    return min(max(_BLOCK_BYTES // (8 * columns), 1), _MOST_BLOCK_ROWS)


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
