"""The exact polynomial features, for kernels whose monomials fit the number of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powersketch.arrays import Real, Rows, divide_or_zero, is_sparse
from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.row_checks import check_power
from powersketch.powers import Monomials, Scaled


@dataclass(frozen=True, eq=False)
class ExactMap:
    """z(x) is the symmetric power of x̃, followed by zero columns where it is shorter."""

    rows: AugmentedRows
    degree: int
    monomials: Monomials

    name: ClassVar[str] = "exact"

    @classmethod
    def of(cls, rows: AugmentedRows, degree: int, columns: int) -> ExactMap:
        """List the monomials."""
        return cls(rows, degree, Monomials.of(columns + rows.extra_columns, degree))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        rows = self.rows
        squared_norms = rows.squared_norms(X, threads)
        check_power(X, squared_norms, self.degree)
        norms = np.sqrt(squared_norms)
        inverse = divide_or_zero(1.0, norms)
        unit = np.empty((X.shape[0], X.shape[1] + rows.extra_columns), dtype=out.dtype)
        dense = X.toarray() if is_sparse(X) else X
        unit[:, : X.shape[1]] = dense * (rows.root_gamma * inverse)[:, None]
        if rows.extra_columns:
            unit[:, -1] = rows.root_coef0 * inverse
        scale = Scaled.of(norms).power(self.degree).to_float().astype(out.dtype)
        out[:, : self.monomials.size] = self.monomials.apply(unit) * scale[:, None]
        out[:, self.monomials.size :] = 0
