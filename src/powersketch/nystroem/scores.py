"""Ridge leverage scores ℓ_i = (K (K + αI)⁻¹)_ii of the rows, and landmarks drawn by them.

The scores say how much a row adds to what the others span: one far from all others has a score near
one, and the rows of a dense cluster share theirs. Nothing here holds more than a few blocks of K.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows
from powersketch.execution import blas_threads, interruptible
from powersketch.feature_maps import thinned, weighted_sample
from powersketch.kernels import Kernel
from powersketch.linalg import TriangularRows, jittered_cholesky
from powersketch.nystroem.columns import KernelColumns, precise_diagonal
from powersketch.parameters import one_of
from powersketch.random_streams import RandomStreams

Indices: TypeAlias = NDArray[np.int64]
Float64: TypeAlias = NDArray[np.float64]

# Scores are estimated from so many columns at most, as the cost grows with the square of the
# number. The landmarks drawn are hardly worse than by scores from all columns.
_MOST_COLUMNS = 512
# In units of the mean of the diagonal: with smaller ridges, scores drown in rounding errors.
_SMALLEST_RIDGE = 1e-9
_JITTER = 1e-12


def recursive_scores(
    kernel: Kernel,
    X: Rows,
    size: int,
    streams: RandomStreams,
    *,
    alpha: float | None = None,
    threads: int = 1,
) -> tuple[Indices, Float64]:
    """Draw landmarks by recursive ridge leverage scores ([MM17], Algorithm 2, of fixed size).

    A uniform half of the rows is scored first, by the same method. Rows drawn by these scores, and
    weighted by them, stand for all rows when the other half is scored.

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
    alpha : float, default=None
        The ridge, positive. None takes the sum of the eigenvalues after the first k, divided by
        k = size / (4 ln size): the smallest for which so many landmarks suffice.
    threads : int, default=1
        How many work at a time.

    Returns
    -------
    indices : ndarray of shape (min(size, n),)
        Of the landmarks, ascending and distinct.
    scores : ndarray of shape (n,)
        The estimated scores of all rows, in [0, 1]; one for all where every row is a landmark.
    """
    if size >= X.shape[0]:
        return uniform_scores(kernel, X, size, streams)
    most = min(size, _MOST_COLUMNS)
    diagonal = precise_diagonal(kernel, X)
    order = streams.permutation("order", X.shape[0])
    shortest, *longer = _prefix_lengths(X.shape[0], most)
    sample, weights, scores = order[:shortest], np.ones(shortest), np.empty(0)
    for length in longer:
        rows = np.sort(order[:length])
        columns = KernelColumns(kernel, X, sample, weights, threads)
        scores = _scores_outside(columns, rows, diagonal, _rank(size, most), alpha)
        probabilities = np.minimum(_oversampling(most) * scores, 1.0)
        kept, weights = thinned(streams, f"sample of {length}", probabilities, most)
        sample = rows[kept]
    return weighted_sample(streams, "landmarks", scores, size), scores


def approximate_scores(
    kernel: Kernel,
    X: Rows,
    size: int,
    streams: RandomStreams,
    *,
    alpha: float | None = None,
    threads: int = 1,
) -> tuple[Indices, Float64]:
    """Draw landmarks by the scores of a first Nyström approximation ([AM15], Theorem 4).

    Its columns are drawn with probabilities in proportion to the diagonal. These scores are never
    too large, but far too small for rows that the first columns missed. Parameters and results
    are those of :func:`recursive_scores`.
    """
    if size >= X.shape[0]:
        return uniform_scores(kernel, X, size, streams)
    most = min(size, _MOST_COLUMNS)
    diagonal = precise_diagonal(kernel, X)
    sample = weighted_sample(streams, "columns", diagonal, most)
    weights = np.ones(most)
    # A column whose diagonal entry is zero is zero, whatever its weight.
    np.divide(diagonal.sum() / most, diagonal[sample], out=weights, where=diagonal[sample] > 0.0)
    np.sqrt(weights, out=weights)
    columns = KernelColumns(kernel, X, sample, weights, threads)
    scores = _scores_inside(columns, diagonal, _rank(size, most), alpha)
    return weighted_sample(streams, "landmarks", scores, size), scores


def uniform_scores(
    kernel: Kernel,
    X: Rows,
    size: int,
    streams: RandomStreams,
    *,
    alpha: float | None = None,
    threads: int = 1,
) -> tuple[Indices, Float64]:
    """Draw landmarks with equal probabilities, which stand in for scores.

    Parameters and results are those of :func:`recursive_scores`; only `X`, `size` and `streams`
    count.
    """
    del kernel, alpha, threads
    count = min(size, X.shape[0])
    scores = np.full(X.shape[0], count / X.shape[0])
    return np.sort(streams.sample("landmarks", X.shape[0], count)), scores


SCORES = {
    "recursive": recursive_scores,
    "approximate": approximate_scores,
    "uniform": uniform_scores,
}


def landmark_rows(
    kernel: Kernel,
    X: Rows,
    size: int,
    streams: RandomStreams,
    *,
    scores: str = "recursive",
    alpha: float | None = None,
    threads: int = 1,
) -> Indices:
    """Return which rows are landmarks, ascending.

    Parameters
    ----------
    kernel, X, size, streams, alpha, threads
        As for :func:`recursive_scores`.
    scores : {"recursive", "approximate", "uniform"}, default="recursive"
        What they are drawn by.

    Returns
    -------
    ndarray of shape (min(size, n),)

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.nystroem.scores import landmark_rows
    >>> from powersketch.kernels import Gaussian
    >>> from powersketch.random_streams import RandomStreams
    >>> X = np.zeros((100, 2))
    >>> X[40] = 5.0
    >>> 40 in landmark_rows(Gaussian(), X, 2, RandomStreams(0))
    True
    """
    draw = SCORES[one_of("scores", scores, tuple(SCORES))]
    return draw(kernel, X, size, streams, alpha=alpha, threads=threads)[0]


def _scores_outside(
    columns: KernelColumns, rows: Indices, diagonal: Float64, rank: int, alpha: float | None
) -> Float64:
    """Return (k(x, x) − c (S + λI)⁻¹ cᵀ) / λ for every row x ([MM17], Lemma 6).

    The c are the row's values in the weighted columns, and S is their square: what the sample
    does not explain of a row is what the row adds to it.
    """
    square = columns.square()
    ridge = _ridge(square, rank, alpha, float(diagonal.mean()))
    np.fill_diagonal(square, square.diagonal() + ridge)
    solver = TriangularRows.of(jittered_cholesky(square, 0.0)[0])

    def explained(block: Real) -> Float64:
        solver.solve(block)
        return _squared_norms(block)

    found = np.concatenate(list(columns.map(explained, rows)))
    scores: Float64 = np.clip((diagonal[rows] - found) / ridge, 0.0, 1.0)
    return scores


def _scores_inside(
    columns: KernelColumns, diagonal: Float64, rank: int, alpha: float | None
) -> Float64:
    """Return b (BᵀB + λI)⁻¹ bᵀ for every row b of the Nyström features B."""
    square = columns.square()
    ridge = _ridge(square, rank, alpha, float(diagonal.mean()))
    inner = TriangularRows.of(jittered_cholesky(square, _JITTER)[0])
    rows = np.arange(diagonal.size)

    def gram(block: Real) -> Float64:
        inner.solve(block)
        return block.T @ block

    total = sum(columns.map(gram, rows), start=np.zeros_like(square))
    np.fill_diagonal(total, total.diagonal() + ridge)
    outer = TriangularRows.of(jittered_cholesky(total, 0.0)[0])

    def score(block: Real) -> Float64:
        inner.solve(block)
        outer.solve(block)
        return _squared_norms(block)

    scores: Float64 = np.clip(np.concatenate(list(columns.map(score, rows))), 0.0, 1.0)
    return scores


def _ridge(square: Real, rank: int, alpha: float | None, unit: float) -> float:
    """Return the ridge in use: alpha, or what the leading eigenvalues leave, in `rank` parts."""
    smallest = _SMALLEST_RIDGE * (unit or 1.0)
    if alpha is not None:
        return max(alpha, smallest)
    # Several threads are slower on a matrix of this size, and far slower on a busy machine.
    with blas_threads(1):
        eigenvalues = interruptible(lambda: np.linalg.eigvalsh(square))
    tail = float(eigenvalues[: max(eigenvalues.size - rank, 0)].sum())
    return max(tail / rank, smallest)


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


def _squared_norms(block: Real) -> Float64:
    norms: Float64 = np.einsum("ij,ij->i", block, block)
    return norms
