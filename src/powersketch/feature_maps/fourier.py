"""Fourier features of the Gaussian kernel, of structured orthogonal frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powersketch.arrays import Real, Rows
from powersketch.feature_maps.batches import dense_parts
from powersketch.feature_maps.gaussian_expansion import CentredRows
from powersketch.feature_maps.vanished import random_direction
from powersketch.random_streams import RandomStreams
from powersketch.sketches import StructuredNormal

_LARGEST_FACTOR = 1e30
_LONGEST = {np.dtype(np.float32): 2.0**22, np.dtype(np.float64): 2.0**51}


@dataclass(frozen=True, eq=False)
class FourierMap:
    """z(x) = (cos⟨w, x − c⟩, sin⟨w, x − c⟩) over the root of the number of frequencies w.

    A last column without a partner is zero.
    """

    rows: CentredRows
    frequencies: StructuredNormal

    name: ClassVar[str] = "fourier"

    @classmethod
    def draw(cls, streams: RandomStreams, rows: CentredRows, size: int) -> FourierMap:
        """Sample normal frequencies of variance 2 gamma, counted in turns."""
        factor = rows.factor / (2.0 * math.pi)
        columns = len(rows.centre)
        return cls(rows, StructuredNormal.draw(streams, columns, size // 2, factor))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        lengths = np.sqrt(self.rows.squared_norms(X, threads))
        frequencies = self.frequencies
        # Frequencies for tiny rows may exceed float32.
        kind = X.dtype if self.rows.factor < _LARGEST_FACTOR else np.dtype(np.float64)
        centre = self.rows.centre.astype(kind)
        scale, used = 1.0 / math.sqrt(frequencies.size), 2 * frequencies.size
        for part, dense in dense_parts(X):
            # The kernel does not change with the origin, and short rows have small phases.
            centred = dense.astype(kind, copy=False) - centre
            out[part, :used] = frequencies.fourier(centred, scale, threads=threads)
        # Phases of rows so far away have no correct digit, and all cosines may be one. Unless they
        # are equal, the kernel of such rows with any others is zero.
        for row in np.flatnonzero(lengths > _LONGEST[X.dtype]).tolist():
            out[row, :used] = random_direction(X, row, 0, used)
        out[:, used:] = 0
