"""One sketch for the whole power of the augmented rows, no look at the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows
from powersketch.feature_maps.augmented_rows import AugmentedRows, power_of_two_shift
from powersketch.feature_maps.row_checks import check_power
from powersketch.feature_maps.row_maps import overflow_error
from powersketch.feature_maps.vanished import restore_vanished
from powersketch.powers import (
    POWER_METHODS,
    Powers,
    PowerSketch,
    Scaled,
    Slice,
)
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES


@dataclass(frozen=True, eq=False)
class DirectMap:
    """z(x) sketches x̃^⊗degree."""

    rows: AugmentedRows
    degree: int
    columns: int
    sketch: Powers

    name: ClassVar[str] = "none"

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        rows: AugmentedRows,
        degree: int,
        columns: int,
        size: int,
        *,
        method: str,
        internal: int,
        base_sketch: str,
        preserve_norms: bool,
    ) -> DirectMap:
        """Sample the sketch on the augmented coordinates."""
        streams, output = streams.child("direct"), Slice(0, size, 0)
        length = columns + rows.extra_columns
        # √coef0 enters as a shift along the last coordinate.
        direction = np.eye(1, length, columns)[0] if rows.extra_columns else None
        sketch: Powers
        if method == "power" and degree == 1 and size < length:
            # No S follows that would mix all coordinates into few: T has to do it.
            base = BASE_SKETCHES[base_sketch].draw(streams.child("T"), length, size)
            sketch = PowerSketch.linear(
                base, output, preserve_norms=preserve_norms, direction=direction
            )
        else:
            sketch = POWER_METHODS[method].draw(
                streams,
                length,
                {degree: output},
                internal=internal,
                base_sketch=base_sketch,
                preserve_norms=preserve_norms,
                direction=direction,
            )
        return cls(rows, degree, columns, sketch)

    def block_scales(
        self, squared_norms: NDArray[np.float64], shift: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the norm of the features, or what undoes the shift of the literal sketch."""
        degree = self.degree
        if self.sketch.preserve_norms:
            scale = Scaled.of(np.sqrt(squared_norms)).power(degree)
        else:
            factor = np.full(len(shift), self.sketch.literal_factor(degree))
            scale = Scaled.of(factor).times_power_of_two(degree * shift)
        return scale.to_float()[:, None]

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        rows = self.rows
        squared_norms = rows.squared_norms(X, threads)
        check_power(X, squared_norms, self.degree)
        shift = power_of_two_shift(squared_norms)
        unit = np.ldexp(1.0, -shift.astype(np.int32))
        scales = self.block_scales(squared_norms, shift)
        fits = self.sketch.write(
            X,
            rows.root_gamma * unit,
            rows.root_coef0 * unit if rows.extra_columns else None,
            scales,
            out,
            threads,
        )
        if not fits:
            raise overflow_error(out.dtype)
        if self.sketch.preserve_norms:
            restore_vanished(X, out, scales[:, 0], 0)
