"""TensorSketch: x^⊗p by circular convolutions of CountSketches, in input-sparsity time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse
from powersketch.execution import check_fits_memory
from powersketch.powers.methods import (
    CompiledPowers,
    FormatCache,
    Outputs,
    PowerOptions,
    ShiftedRows,
)
from powersketch.random_streams import RandomStreams
from powersketch.routines import Chain, TensorSketchSpec, make_tensor_sketch, smooth_parts
from powersketch.storable import remembered, storable


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TensorSketchPowers(CompiledPowers):
    """z_l = C₁u ∗ C₂u ∗ … ∗ C_l u for every degree l, each with its own CountSketches [PP13].

    A circular convolution of CountSketches is the CountSketch of u^⊗l under the sum of their hashes
    and the product of their signs. It is unbiased, with a variance below
    ((N + 2a − 2f)^l − a^l) / m for inner products of features, where a = ⟨x, y⟩²,
    N = ‖x‖² ‖y‖², f = Σ xᵢ² yᵢ² and m is the slice's size [ANW14]: good for low degrees and sparse
    rows. A row costs l (nnz + m log m) for each degree. Rows whose coordinates all cancel each
    other in one of the CountSketches get zeros, as they must for the sketch to be unbiased.

    Fourier transforms have lengths without prime factors above 5. A slice of another size consists
    of a few such TensorSketches with hashes of their own, weighted by their sizes: the mean of
    independent estimates, whose variance is that of one sketch of the whole size.

    The leaves are CountSketches whatever `base_sketch` says, and there are no intermediate powers
    that `internal` could be the length of.

    Attributes
    ----------
    columns : int
        The length of u.
    outputs : mapping of int to Slice
        Where every degree's features go.
    keys : mapping of int to array of uint64
        The keys of every degree's hashes, as many as the degree for each part of its slice.
    preserve_norms : bool
        Whether every power is rescaled to its exact norm.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.powers import PowerOptions, ShiftedRows, Slice
    >>> from powersketch.powers.tensor_sketch import TensorSketchPowers
    >>> from powersketch.random_streams import RandomStreams
    >>> options = PowerOptions(internal=4, base_sketch="srht", preserve_norms=False)
    >>> sketch = TensorSketchPowers.draw(RandomStreams(7), 3, {2: Slice(0, 4, 0)}, options)
    >>> ones, out = np.ones(2), np.empty((2, 4))
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> sketch.write(ShiftedRows(X, ones), ones[:, None], out, threads=1)
    True
    >>> np.linalg.norm(out, axis=1)
    array([1., 4.])
    """

    columns: int
    outputs: Outputs
    keys: Mapping[int, NDArray[np.uint64]]
    preserve_norms: bool
    direction: Vector | None = None
    _compiled: FormatCache[Chain] = field(default_factory=FormatCache, init=False)

    @classmethod
    @remembered
    def draw(
        cls, streams: RandomStreams, columns: int, outputs: Outputs, options: PowerOptions
    ) -> TensorSketchPowers:
        """Sample the keys of all hashes; only norm preservation matters of the options."""
        words = sum(degree * len(_parts(degree, cut.size)) for degree, cut in outputs.items())
        check_fits_memory(f"{words} hashes", 8 * words, "choose a lower degree")
        # With hashes in common, the errors of two degrees would be correlated and add up.
        keys = {
            degree: streams.words(f"degree_{degree}", degree * len(_parts(degree, cut.size)))
            for degree, cut in outputs.items()
        }
        preserve_norms, direction = options.preserve_norms, options.direction
        return cls(columns, dict(outputs), keys, preserve_norms, direction)

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in the order of the columns of the block scales."""
        return tuple(self.outputs)

    def literal_factor(self, degree: int) -> float:
        """Return 1: the sketch of every degree is unbiased as it is."""
        del degree
        return 1.0

    def _prepare(self, X: Rows) -> Chain:
        blocks = [
            (degree, size, cut.offset + start)
            for degree, cut in self.outputs.items()
            for start, size in _parts(degree, cut.size)
        ]
        nothing = np.empty(0, dtype=np.uint64)
        spec = TensorSketchSpec(
            columns=X.shape[1],
            blocks=np.array(blocks, dtype=np.int32).reshape(-1, 3),
            keys=np.concatenate([nothing, *(self.keys[degree] for degree in self.outputs)]),
            direction=np.empty(0) if self.direction is None else self.direction,
            preserve_norms=self.preserve_norms,
            sparse=is_sparse(X),
        )
        return make_tensor_sketch(spec, X.dtype)

    def write(self, rows: ShiftedRows, block_scales: Float64, out: Real, threads: int) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype."""
        return super().write(rows, self._part_scales(block_scales), out, threads)

    def _part_scales(self, block_scales: Float64) -> Float64:
        """Return the scales of all parts: that of the slice times √(the part's share of it)."""
        parts = [_parts(degree, cut.size) for degree, cut in self.outputs.items()]
        if all(len(sizes) == 1 for sizes in parts):
            return block_scales
        shares = [
            size / cut.size
            for cut, sizes in zip(self.outputs.values(), parts, strict=True)
            for _, size in sizes
        ]
        repeated = np.repeat(block_scales, [len(sizes) for sizes in parts], axis=1)
        return repeated * np.sqrt(shares)


@lru_cache(maxsize=256)
def _parts(degree: int, size: int) -> list[tuple[int, int]]:
    """Return where the parts of a slice start, and their sizes; degree 1 needs no transform."""
    sizes = [size] if degree == 1 else smooth_parts(size)
    return list(zip(accumulate(sizes, initial=0), sizes, strict=False))
