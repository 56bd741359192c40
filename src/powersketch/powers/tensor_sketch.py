"""TensorSketch: x^⊗p by circular convolutions of CountSketches, in input-sparsity time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse
from powersketch.powers.methods import FormatCache
from powersketch.powers.programs import Slice
from powersketch.powers.repeated_squaring import within_range
from powersketch.random_streams import RandomStreams
from powersketch.routines import TensorSketchSpec, make_tensor_sketch


@dataclass(frozen=True, eq=False)
class TensorSketchPowers:
    """z_l = C₁u ∗ C₂u ∗ … ∗ C_l u for every degree l, with CountSketches of its own [PP13].

    A circular convolution of CountSketches is the CountSketch of u^⊗l under the sum of their hashes
    and the product of their signs. It is unbiased, with a variance below
    ((N + 2a − 2f)^l − a^l) / m for inner products of features, where a = ⟨x, y⟩²,
    N = ‖x‖² ‖y‖², f = Σ xᵢ² yᵢ² and m is the slice's size [ANW14]: good for low degrees and sparse
    rows. A row costs l (nnz + m log m) for each degree. Rows whose coordinates all cancel each
    other in one of the CountSketches get zeros, as they must for the sketch to be unbiased.

    The leaves are CountSketches whatever `base_sketch` says, and there are no intermediate powers
    that `internal` could be the length of.

    Attributes
    ----------
    columns : int
        The length of u.
    outputs : mapping of int to Slice
        Where every degree's features go.
    keys : mapping of int to array of uint64
        The keys of every degree's hashes, as many as the degree.
    preserve_norms : bool
        Whether every power is rescaled to its exact norm.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.powers import Slice, TensorSketchPowers
    >>> from powersketch.random_streams import RandomStreams
    >>> sketch = TensorSketchPowers.draw(
    ...     RandomStreams(7),
    ...     3,
    ...     {2: Slice(0, 4, 0)},
    ...     internal=4,
    ...     base_sketch="srht",
    ...     preserve_norms=False,
    ... )
    >>> ones, out = np.ones(2), np.empty((2, 4))
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> sketch.write(X, ones, None, ones[:, None], out, 1)
    True
    >>> np.linalg.norm(out, axis=1)
    array([1., 4.])
    """

    columns: int
    outputs: Mapping[int, Slice]
    keys: Mapping[int, NDArray[np.uint64]]
    preserve_norms: bool
    direction: Vector | None = None
    _sketches: FormatCache[routines.TensorSketch] = field(
        default_factory=FormatCache, init=False, repr=False
    )

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        columns: int,
        outputs: Mapping[int, Slice],
        *,
        internal: int,
        base_sketch: str,
        preserve_norms: bool,
        direction: Vector | None = None,
    ) -> TensorSketchPowers:
        """Sample the keys of all hashes; neither `internal` nor `base_sketch` matters."""
        del internal, base_sketch
        # With hashes in common, the errors of two degrees would be correlated and add up.
        keys = {degree: streams.words(f"degree_{degree}", degree) for degree in outputs}
        return cls(columns, dict(outputs), keys, preserve_norms, direction)

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in the order of the columns of the block scales."""
        return tuple(self.outputs)

    def literal_factor(self, degree: int) -> float:
        """Return 1: the sketch of every degree is unbiased as it is."""
        del degree
        return 1.0

    def _sketch_for(self, X: Rows) -> routines.TensorSketch:
        blocks = [(degree, cut.size, cut.offset) for degree, cut in self.outputs.items()]
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

    def write(
        self,
        X: Rows,
        row_scale: Vector,
        row_shift: Vector | None,
        block_scales: Float64,
        out: Real,
        threads: int,
    ) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype."""
        sketch = self._sketches.get(X, self._sketch_for)
        X, row_scale = within_range(X, row_scale)
        shift = np.empty(0) if row_shift is None else row_shift
        return sketch.apply(
            X,
            row_scale.astype(out.dtype),
            shift.astype(out.dtype),
            np.ascontiguousarray(block_scales),
            out,
            threads,
        )
