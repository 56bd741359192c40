"""The rows of a fit: checked targets and weights, blocks, batches, rows that are left out."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length

from powersketch.arrays import Float64, Rows, Vector, is_sparse, slices
from powersketch.exceptions import InputError, InputTypeError, OutlierWarning, warn_user
from powersketch.feature_maps import DO_NOT_COUNT, absurd_distances, warn_of_far_rows
from powersketch.kernels import Gaussian, Kernel
from powersketch.linalg import dominant_rows_message
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable
from powersketch.validation import checked_rows, sound_array

BLOCK_BYTES = 128 << 20
SMALLEST_BLOCK = 64  # rows
# Products of targets, weights and features of this size neither overflow nor underflow.
_SMALLEST, _LARGEST = 1e-100, 1e100
# Targets this many times larger than all others are named, if they are few and rows are not.
_OUTLYING = 1e6
_ROWS_PER_OUTLIER = 100
_FEWEST_ROWS = 10
_NAMED = 3
# A row of large weight is repeated at most this often for the feature map.
_LARGEST_REPETITION = 8
LEFT_OUT = (
    "They were left out of the fit: this kernel is so large there that what all other rows say "
    "would be lost."
)
# Relative differences of k(x, x) below this are due to rounding.
_ROUNDING = 1e-5
_MOST_COMPARED = 256


@storable
@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows, targets, and weights that are above 0 or None; the numbers that the user knows."""

    X: Rows
    targets: Float64
    weights: Vector | None
    numbers: NDArray[np.int64] | None = None

    @classmethod
    def of_positive_weight(cls, X: Rows, targets: Float64, weights: Vector | None) -> TrainingRows:
        """Leave out the rows of weight zero; refuse to leave out all."""
        check_some_weight(weights)
        return cls.of_some_weight(X, targets, weights)

    @classmethod
    def of_some_weight(cls, X: Rows, targets: Float64, weights: Vector | None) -> TrainingRows:
        """Leave out the rows of weight zero, even if none is left: there may be other blocks."""
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            return cls(X[kept], targets[kept], weights[kept], kept)
        return cls(X, targets, weights)

    @cached_property
    def count(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def bytes(self) -> int:
        """What the rows take, without targets and weights."""
        parts = [self.X.data, self.X.indices, self.X.indptr] if is_sparse(self.X) else [self.X]
        return sum(int(part.nbytes) for part in parts)

    def copied(self) -> TrainingRows:
        """Return copies of everything: who changes the rows later on does not mean these."""
        weights = None if self.weights is None else self.weights.copy()
        return TrainingRows(self.X.copy(), self.targets.copy(), weights)

    def __getitem__(self, rows: Any) -> TrainingRows:
        weights = None if self.weights is None else self.weights[rows]
        numbers = None if self.numbers is None else self.numbers[rows]
        return TrainingRows(self.X[rows], self.targets[rows], weights, numbers)

    def without(self, rows: Any) -> TrainingRows:
        """Leave out some rows; the others keep the numbers that the user knows."""
        kept = np.delete(np.arange(self.count), rows)
        others = self[kept]
        return others if others.numbers is not None else replace(others, numbers=kept)

    def sample(self, count: int, streams: RandomStreams) -> TrainingRows:
        """Return some rows in their order, all of them if they are few."""
        if count >= self.count:
            return self
        return self[np.sort(streams.sample("rows", self.count, count))]

    def repeated_by_weight(self, without: NDArray[np.intp] | None = None) -> Rows:
        """Return rows that represent the weighted ones, for what takes no weights.

        Whole weights repeat rows. Others do so as nearly as can be: evenly spaced points of the
        cumulated weights are looked up. Some rows can be left out.
        """
        weights, left_out = self.weights, () if without is None else without
        if weights is None or weights.min() == weights.max():
            return self.without(left_out).X if len(left_out) else self.X
        total = float(weights.sum())
        count = int(np.clip(round(total), weights.size, _LARGEST_REPETITION * weights.size))
        points = (np.arange(count) + 0.5) * (total / count)
        indices = np.minimum(np.searchsorted(np.cumsum(weights), points), weights.size - 1)
        return self.X[indices[~np.isin(indices, left_out)]]


def joined_rows(parts: Sequence[TrainingRows]) -> TrainingRows:
    """Return the rows of several blocks as one; only their numbers are lost."""
    if len(parts) == 1:
        return parts[0]
    stack = sparse.vstack if is_sparse(parts[0].X) else np.concatenate
    weights: Vector | None = None
    if any(part.weights is not None for part in parts):
        ones = (np.ones(part.count) if part.weights is None else part.weights for part in parts)
        weights = np.concatenate(list(ones))
    X: Rows = stack([part.X for part in parts])
    X = X.tocsr() if is_sparse(X) else X
    return TrainingRows(X, np.concatenate([part.targets for part in parts]), weights)


@storable
@dataclass(frozen=True, eq=False)
class Reservoir:
    """A sample of all rows of blocks that come one after the other, each as likely as any other.

    Every row has a random number, and those of the smallest ones are kept.
    """

    streams: RandomStreams
    rows: TrainingRows | None = None
    numbers: Vector = field(default_factory=lambda: np.empty(0))
    blocks: int = 0

    def with_block(self, block: TrainingRows, most: int) -> Reservoir:
        """Return the sample of at most so many rows that has seen one more block."""
        numbers = self.streams.uniforms(f"block {self.blocks}", block.count)
        every = np.concatenate((self.numbers, numbers))
        rows = joined_rows([block] if self.rows is None else [self.rows, block])
        kept = np.sort(np.argsort(every, kind="stable")[:most])
        # A copy of what may be the user's array, who might read the next block into it.
        rows, every = rows[kept], every[kept]
        return Reservoir(self.streams, rows, every, self.blocks + 1)


def row_blocks(rows: int, features: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of the rows whose features take at most `block_bytes` in float64.

    No block is shorter than 64 rows, as sums of short blocks are slow.
    """
    return slices(rows, max(block_bytes // (8 * features), SMALLEST_BLOCK))


def without_absurd_rows(
    rows: TrainingRows, kernel_of: Callable[[TrainingRows], Any]
) -> tuple[TrainingRows, NDArray[np.intp]]:
    """Return the rows to fit, and which of them are absurdly far from all others.

    A kernel that grows with its rows is so large at a fill value such as 1e20 that all other rows
    are lost in rounding errors: there, absurd rows are left out. Bounded kernels, such as the
    Gaussian, do not mind, and such rows stay. A warning names them either way. `kernel_of` returns
    the kernel for the other rows, or None if it is unknown.
    """
    absurd, ratios = absurd_distances(rows.X)
    if not absurd.size:
        return rows, absurd
    ordinary = rows.without(absurd)
    grows = grows_with_rows(kernel_of(ordinary), ordinary.X)
    numbers = absurd if rows.numbers is None else rows.numbers[absurd]
    warn_of_far_rows(numbers, ratios, LEFT_OUT if grows else DO_NOT_COUNT)
    return (ordinary, absurd[:0]) if grows else (rows, absurd)


def grows_with_rows(kernel: Any, X: Rows) -> bool:
    """Tell whether k(x, x) is smaller for rows of half the length."""
    if not isinstance(kernel, Kernel):
        return False
    some = X[:_MOST_COMPARED]
    whole, half = kernel.diagonal(some), kernel.diagonal(some * some.dtype.type(0.5))
    return bool(np.any(half < (1.0 - _ROUNDING) * whole))


def warn_of_dominant_rows(kernel: Any, rows: TrainingRows) -> None:
    """Name rows that decide the whole solution because the kernel is so large there, if any."""
    # The Gaussian kernel is one at all of them.
    if not isinstance(kernel, Kernel) or isinstance(kernel, Gaussian):
        return
    diagonal = kernel.diagonal(rows.X).astype(np.float64)
    cause = dominant_rows_message(diagonal, rows.numbers)
    if cause is not None:
        warn_user(f"{cause}.", OutlierWarning)


def _check_kind(name: str, values: Any) -> None:
    """Refuse times and texts, which NumPy would convert to numbers."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "f") in "mMUS":
        raise InputTypeError(
            f"{name} has dtype {dtype}; allowed are real numbers: convert with astype(float)."
        )


def checked_targets(X: Any, y: Any, *, estimator: Any = None) -> tuple[Any, Vector]:
    """Return rows, and as many finite float64 targets of one or two dimensions."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: give a target for "
            "every row."
        )
    X = checked_rows(X, estimator=estimator)
    _check_kind("y", y)
    targets = check_array(
        sound_array("y", y),
        ensure_2d=False,
        allow_nd=True,
        dtype=np.float64,
        input_name="y",
        estimator=estimator,
    )
    if targets.ndim == 0 or targets.ndim > 2 or targets.size == 0:
        raise InputError(
            f"y has shape {targets.shape}; allowed are (n,) and (n, t), a target or a row of "
            "targets for every row of X."
        )
    check_consistent_length(X, targets)
    largest = np.abs(targets).max()
    if largest > 0.0 and not _SMALLEST <= largest <= _LARGEST:
        raise InputError(
            f"y reaches {largest:.3g}; allowed is a largest value from {_SMALLEST:g} to "
            f"{_LARGEST:g}, as squares of others are out of the range of float64: divide y by a "
            "constant, and multiply predictions by it."
        )
    return X, targets


def warn_of_outlying_targets(
    targets: Vector, weights: Vector | None, numbers: NDArray[np.int64] | None = None
) -> None:
    """Name the rows whose targets are so far from all others that they drag every prediction.

    `numbers` are those that the user knows, if they are others.
    """
    counted = np.arange(targets.shape[0]) if weights is None else np.flatnonzero(weights)
    for column in targets.reshape(targets.shape[0], -1).T:
        sizes = np.abs(column[counted])
        order = np.argsort(sizes, kind="stable")
        few = min(sizes.size // _ROWS_PER_OUTLIER + 1, sizes.size - 1)
        if sizes.size < _FEWEST_ROWS:
            return
        below, above = sizes[order[-few - 1 : -1]], sizes[order[-few:]]
        gaps = np.flatnonzero((above > _OUTLYING * below) & (below > 0.0))
        if gaps.size:
            rows = counted[order[gaps[0] - few :]]
            first = rows[::-1][:_NAMED]
            known = first if numbers is None else numbers[first]
            pairs = zip(column[first].tolist(), known.tolist(), strict=True)
            named = ", ".join(f"{value:.3g} in row {number}" for value, number in pairs)
            warn_user(
                f"y has {named}{' and others' if rows.size > _NAMED else ''}, and all other values "
                f"are at most {below[gaps[0]]:.3g} in size: such targets drag every prediction. "
                "Remove the rows, or correct them.",
                OutlierWarning,
            )
            return


def checked_weights(sample_weight: Any, X: Any) -> Vector | None:
    """Return finite float64 weights that are not negative, one for every row; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    _check_kind("sample_weight", sample_weight)
    weights: Vector = check_array(
        sound_array("sample_weight", sample_weight),
        ensure_2d=False,
        allow_nd=True,
        dtype=np.float64,
        input_name="sample_weight",
    )
    if weights.shape != (X.shape[0],):
        raise InputError(
            f"sample_weight has shape {weights.shape}; allowed is ({X.shape[0]},), "
            "a weight for every row."
        )
    if (weights < 0.0).any():
        raise InputError(
            f"sample_weight reaches down to {weights.min():.3g}; negative values in data passed to "
            "sample_weight are not allowed: use weights of at least 0."
        )
    positive = weights[weights > 0.0]
    if positive.size and not (positive.min() >= _SMALLEST and positive.max() <= _LARGEST):
        raise InputError(
            f"sample_weight reaches from {positive.min():.3g} to {positive.max():.3g}; allowed are "
            f"0 and numbers from {_SMALLEST:g} to {_LARGEST:g}, as products of others are out of "
            "the range of float64: multiply all weights, and alpha, by a constant."
        )
    return weights


def check_some_weight(weights: Vector | None) -> None:
    """Refuse weights that leave no row."""
    if weights is not None and not weights.any():
        raise InputError(
            "sample_weight is zero for every row; at least one must be above 0: "
            "give weights that leave some rows, or None."
        )


class KnownTargets(NamedTuple):
    """What has to be known of all targets before rows of a block can be coded.

    Classifiers need the classes, and factors of the weights of each or None.
    """

    classes: Any = None
    factors: Vector | None = None


class Batch(NamedTuple):
    """Rows, targets or labels, and weights or None."""

    X: Any
    y: Any
    weights: Any = None


def gathered(
    batches: Iterable[Any], target: Any, rows: int
) -> tuple[Batch, Iterator[Batch] | None]:
    """Return the first batches as one, of at least so many rows, and the others; None if none."""
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes | dict):
        raise InputTypeError(
            f"batches is a {type(batches).__name__}; allowed is an iterable of batches: give a "
            "list or a generator of pairs (X, y)."
        )
    every = (_batch(given, target, number) for number, given in enumerate(batches))
    first: list[Batch] = []
    while sum(len(batch.y) for batch in first) < rows:
        batch = next(every, None)
        if batch is None:
            break
        # A copy: readers that fill one array again and again have only the last batch in it.
        first.append(deepcopy(batch))
    if not first:
        raise InputError("there are no batches; at least 1 is necessary: give pairs (X, y).")
    following = next(every, None)
    return _joined(first), None if following is None else chain((following,), every)


def _batch(given: Any, target: Any, number: int) -> Batch:
    """Return what a batch consists of: a pair, a triple, or a table with the target in it."""
    if isinstance(given, tuple) and len(given) in (2, 3):
        return Batch(*given)
    if target is None:
        raise InputTypeError(
            f"batch {number} is a {type(given).__name__}; allowed are pairs (X, y), triples "
            "(X, y, sample_weight), and with target= a table: give the name of a column."
        )
    table = given.to_pandas() if hasattr(given, "to_pandas") else given
    if not hasattr(table, "drop") or not hasattr(table, "columns"):
        raise InputTypeError(
            f"batch {number} is a {type(given).__name__}; allowed with target={target!r} are "
            "tables of pandas and batches of Arrow: give one of them, or pairs (X, y)."
        )
    if target not in table.columns:
        raise InputError(
            f"batch {number} has no column {target!r}; there are "
            f"{', '.join(map(repr, table.columns))}: name one of them as target."
        )
    return Batch(table.drop(columns=[target]), table[target])


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    rows = [batch.X for batch in batches]
    if any(is_sparse(X) for X in rows):
        X: Any = sparse.vstack(rows, format="csr")
    elif hasattr(rows[0], "columns"):
        import pandas

        X = pandas.concat(rows)
    else:
        X = np.concatenate(rows)
    weights = None
    if any(batch.weights is not None for batch in batches):
        weights = np.concatenate(
            [np.ones(len(b.y)) if b.weights is None else np.asarray(b.weights) for b in batches]
        )
    return Batch(X, np.concatenate([np.asarray(batch.y) for batch in batches]), weights)
