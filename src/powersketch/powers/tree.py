"""The tree of [AKK+20]: x^⊗p sketched by independent sketches at every leaf and every node.

Degree l fills the leaves 0 … l − 1 with the row; all further leaves hold e₁. A subtree of such
padding has the known value e₁, so the other child of its parent is passed through unchanged: it is
as if the parent were not there. What is left is one vector for a span of neighbouring leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from powersketch import routines
from powersketch.arrays import (
    Float64,
    Real,
    Rows,
    Vector,
    divide_or_zero,
    is_sparse,
    scaled_rows,
    slices,
)
from powersketch.parameters import checked_integer
from powersketch.powers.methods import (
    FormatCache,
    Outputs,
    PowerOptions,
    ShiftedRows,
)
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, BaseSketch, TensorSRHT
from powersketch.storable import remembered, storable

# A tree has a leaf and a node for every degree.
_HIGHEST_DEGREE = 2048
# Rows are taken in blocks of this many bytes: small enough for the vectors of a node to stay in
# cache, and large enough for a call to be worth its overhead.
_BLOCK_BYTES = 1 << 19
_FEWEST_ROWS = 16
_ROWS = "rows"  # the name of the shift of leaves that are the rows themselves

Span: TypeAlias = tuple[int, int]
"""Leaves first … stop − 1; the vector of a span is a sketch of the power of degree stop − first."""


@storable
@dataclass(frozen=True)
class Step:
    """One vector: that of a leaf, or S applied to the vectors of both halves of the span.

    Attributes
    ----------
    span : Span
        The leaves below.
    operator : str
        Name of the T or S to apply. Steps of the same name share it.
    degree : int or None
        The degree whose features the vector gives; None if other steps need it.
    finished : tuple of Span
        The vectors that no later step needs.
    """

    span: Span
    operator: str
    degree: int | None
    finished: tuple[Span, ...]


def level(span: Span) -> int:
    """Return the height of the smallest full subtree that holds the span; leaves have height 0.

    >>> level((3, 4)), level((4, 7)), level((0, 9))
    (0, 2, 4)
    """
    return (span[1] - span[0] - 1).bit_length()


def halves(span: Span) -> tuple[Span, Span]:
    """Return what lies in the left and in the right child of that subtree's root.

    >>> halves((0, 5)), halves((4, 7))
    (((0, 4), (4, 5)), ((4, 6), (6, 7)))
    """
    middle = span[0] + (1 << level(span)) // 2
    return (span[0], middle), (middle, span[1])


def tree_steps(degrees: Iterable[int]) -> tuple[Step, ...]:
    """Return the steps for some degrees, each vector as late as possible and only once.

    A degree's last step has an operator of its own, because its features have their own size, and
    because then the sampling errors of that step are independent between degrees. All other steps
    are shared: there are O(q log q) of them for all degrees up to q, and O(log q) vectors are kept
    at any time.

    >>> for step in tree_steps([3]):
    ...     print(step.operator, step.span, step.degree)
    leaf/0 (0, 1) None
    leaf/1 (1, 2) None
    node/1/0 (0, 2) None
    leaf/2 (2, 3) None
    root/3 (0, 3) 3
    """
    order: list[tuple[Span, int | None]] = []
    known: set[Span] = set()
    for degree in sorted(degrees):
        for operand in _operands((0, degree)):
            _append_missing(operand, order, known)
        order.append(((0, degree), degree))
    last_use = {
        operand: position for position, (span, _) in enumerate(order) for operand in _operands(span)
    }
    return tuple(
        Step(span, _name(span, degree), degree, _finished(span, position, last_use))
        for position, (span, degree) in enumerate(order)
    )


def _operands(span: Span) -> tuple[Span, ...]:
    return halves(span) if level(span) else ()


def _append_missing(span: Span, order: list[tuple[Span, int | None]], known: set[Span]) -> None:
    """Append the steps of a subtree, depth first, that are not there yet."""
    if span in known:
        return
    known.add(span)
    for operand in _operands(span):
        _append_missing(operand, order, known)
    order.append((span, None))


def _finished(span: Span, position: int, last_use: dict[Span, int]) -> tuple[Span, ...]:
    return tuple(operand for operand in _operands(span) if last_use[operand] == position)


def _name(span: Span, degree: int | None) -> str:
    if degree is not None:
        return f"root/{degree}"
    height = level(span)
    return f"node/{height}/{span[0] >> height}" if height else f"leaf/{span[0]}"


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TreeSketch:
    """Sketches of some powers of the rows of a matrix, by one binary tree [AKK+20].

    T of every leaf and S of every node are independent of each other. So the features of a degree
    are unbiased, unless norms are preserved. Degrees share leaves and inner nodes, but each has a
    last S of its own: its sampling errors are independent of those of the others. The features of
    a degree depend on the streams, the internal length and their number, and not on which other
    degrees there are.

    Attributes
    ----------
    columns : int
        The length of the longest row.
    internal : int
        The length of intermediate powers.
    outputs : mapping of int to Slice
        The size and the first column of every degree's features. Where a slice starts does not
        matter here: no two degrees have rows of a last S in common.
    steps : tuple of Step
        The order of evaluation.
    bases : mapping of str to BaseSketch
        T of the leaves by name. A leaf that is not there keeps the row as it is: where the
        internal length holds the padded row, T could only lose something, and the two factors of
        S have independent signs of their own.
    pairs : mapping of str to TensorSRHT
        S of the nodes by name.
    preserve_norms : bool
        Whether every power is rescaled to its exact norm.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.powers import POWER_METHODS, PowerOptions, ShiftedRows, Slice
    >>> from powersketch.random_streams import RandomStreams
    >>> options = PowerOptions(internal=16, base_sketch="srht", preserve_norms=True)
    >>> streams, outputs = RandomStreams(7), {5: Slice(0, 8, 0)}
    >>> sketch = POWER_METHODS["tree"].draw(streams, 3, outputs, options)
    >>> x, norm = np.array([[0.6, 0.0, -0.8]]), np.ones((1, 1))
    >>> features = np.empty((1, 8))
    >>> sketch.write(ShiftedRows(x, np.ones(1)), norm, features, threads=1)
    True
    >>> round(float(features[0] @ features[0]), 12)
    1.0
    """

    columns: int
    internal: int
    outputs: Outputs
    steps: tuple[Step, ...]
    bases: Mapping[str, BaseSketch]
    pairs: Mapping[str, TensorSRHT]
    preserve_norms: bool
    direction: Vector | None = None
    _shifts: FormatCache[Mapping[str, Real]] = field(default_factory=FormatCache, init=False)

    @classmethod
    @remembered
    def draw(
        cls, streams: RandomStreams, columns: int, outputs: Outputs, options: PowerOptions
    ) -> TreeSketch:
        """Sample T of every leaf and S of every node that the degrees in `outputs` need."""
        for degree in outputs:
            checked_integer(
                "degree",
                degree,
                1,
                _HIGHEST_DEGREE,
                remedy='a tree has as many leaves; method="power" takes any degree',
            )
        bases: dict[str, BaseSketch] = {}
        pairs: dict[str, TensorSRHT] = {}
        internal, steps = options.internal, tree_steps(outputs)
        for step in steps:
            size = internal if step.degree is None else outputs[step.degree].size
            height, branch = level(step.span), streams.child(step.operator)
            if height and step.operator not in pairs:
                length = min(columns, internal) if height == 1 else internal
                pairs[step.operator] = TensorSRHT.draw(branch, length, size)
            elif not height and size < columns:
                T = BASE_SKETCHES[options.base_sketch]
                bases[step.operator] = T.draw(branch, columns, size)
        preserve_norms, direction = options.preserve_norms, options.direction
        return cls(columns, internal, dict(outputs), steps, bases, pairs, preserve_norms, direction)

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in ascending order."""
        return tuple(sorted(self.outputs))

    @property
    def keeps_rows(self) -> bool:
        """Whether the leaves below nodes are the rows themselves."""
        return self.columns <= self.internal

    def literal_factor(self, degree: int) -> float:
        """Return 1: the last S of a degree is scaled for the rows it has."""
        del degree
        return 1.0

    def _shifts_for(self, X: Rows) -> Mapping[str, Real]:
        """Return what every T makes of the direction."""
        if self.direction is None:
            return {}
        if self.keeps_rows:
            return {_ROWS: self.direction.astype(X.dtype)}
        row = np.ascontiguousarray(self.direction[None, :], dtype=np.float64)
        return {name: T.apply(row)[0].astype(X.dtype) for name, T in self.bases.items()}

    def write(self, rows: ShiftedRows, block_scales: Float64, out: Real, threads: int) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype."""
        fits, shifts = True, self._shifts.of(rows.X, self._shifts_for)
        for part in self._parts(rows.X, threads):
            block = rows[part]
            shift = None if block.shift is None else block.shift.astype(out.dtype)
            leaves = self._leaf_rows(block)
            if shift is not None and self.keeps_rows:
                leaves += shift[:, None] * shifts[_ROWS]
            evaluation = _Evaluation(self, shifts, leaves, shift, threads)
            # The result says whether a feature leaves the range of the dtype.
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                fits &= evaluation.write(block_scales[part], out[part])
        return fits

    def _parts(self, X: Rows, threads: int) -> Iterator[slice]:
        """Split the rows into blocks that stay in cache with their vectors."""
        longest = self.internal if is_sparse(X) else max(X.shape[1], self.internal)
        rows = threads * max(_BLOCK_BYTES // (longest * X.dtype.itemsize), _FEWEST_ROWS)
        return slices(X.shape[0], rows)

    def _leaf_rows(self, rows: ShiftedRows) -> Rows:
        """Return what the leaves are applied to, but for the shift."""
        rows = rows.within_range()
        X = scaled_rows(rows.X, rows.scale)
        if not self.keeps_rows:
            return X
        # Rows as short as this take no more memory than a vector of the tree, dense or not.
        dense: Real = X.toarray() if is_sparse(X) else X
        if dense.shape[1] < self.columns:
            dense = np.pad(dense, ((0, 0), (0, self.columns - dense.shape[1])))
        return dense


@dataclass(frozen=True, eq=False, repr=False)
class _Power:
    """Rows whose true values are `values` times `scale`; the norms of `values` stay near one."""

    values: Real
    scale: Vector


@dataclass(frozen=True, eq=False, repr=False)
class _Evaluation:
    """The tree on a block of rows."""

    sketch: TreeSketch
    shifts: Mapping[str, Real]
    rows: Rows
    shift: Real | None
    threads: int

    def write(self, block_scales: Vector, out: Real) -> bool:
        """Take all steps, and write features as soon as they are there; False on overflow."""
        sketch, powers, fits = self.sketch, dict[Span, _Power](), True
        block = 0
        for step in sketch.steps:
            power = self._power(step, powers)
            for span in step.finished:
                del powers[span]
            if step.degree is None:
                powers[step.span] = power
                continue
            columns = out[:, sketch.outputs[step.degree].columns]
            fits &= self._write_block(power, block_scales[:, block], columns)
            block += 1
        return fits

    def _power(self, step: Step, powers: Mapping[Span, _Power]) -> _Power:
        if not level(step.span):
            return _Power(self._leaf(step.operator), np.ones(self.rows.shape[0]))
        left, right = (powers[half] for half in halves(step.span))
        S = self.sketch.pairs[step.operator]
        values = S.apply(left.values, right.values, threads=self.threads)
        power = _Power(values, left.scale * right.scale)
        # A product of four vectors of norms near one is far from the limits of any dtype.
        ordinary = level(step.span) % 2 == 1 or step.degree is not None
        return power if ordinary else self._normalised(power)

    def _leaf(self, name: str) -> Real:
        T = self.sketch.bases.get(name)
        leaf: Real = self.rows if T is None else T.apply(self.rows, threads=self.threads)
        if self.shift is not None and name in self.shifts:
            leaf += self.shift[:, None] * self.shifts[name]
        return leaf

    def _normalised(self, power: _Power) -> _Power:
        """Divide by the norms.

        S is linear in each factor, so that nothing but the scale of later powers depends on it;
        where norms are preserved, it is therefore enough that features get the exact one.
        """
        values, norms = power.values, self._norms(power.values)
        values *= divide_or_zero(1.0, norms).astype(values.dtype)[:, None]
        return _Power(values, power.scale * norms)

    def _norms(self, values: Real) -> Vector:
        return np.sqrt(routines.squared_norms(values, threads=self.threads))

    def _write_block(self, power: _Power, scales: Vector, out: Real) -> bool:
        """Write one degree's features; False if one of them overflows."""
        values = power.values
        norms = self._norms(values)
        if self.sketch.preserve_norms:
            factor = divide_or_zero(scales, norms)
        else:
            factor = np.where(norms > 0, scales * power.scale, 0.0)
        sizes = np.abs(factor) * np.maximum(norms, 1.0)
        np.multiply(values, factor.astype(out.dtype)[:, None], out=out[:, : values.shape[1]])
        out[:, values.shape[1] :] = 0  # a row may be shorter than the features of degree 1
        return bool(np.all(sizes <= np.finfo(out.dtype).max))
