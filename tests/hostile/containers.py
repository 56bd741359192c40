"""The same numbers in every container that users keep them in."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from tests.feature_maps.cases import unaligned
from tests.feature_maps.test_layouts import LAYOUTS, SPARSE

Array = NDArray[Any]


@dataclass(frozen=True)
class Container:
    """A way to hold rows; `numbers` are those that it can hold: "quarters", "whole" or "bits"."""

    name: str
    pack: Callable[[Array], Any]
    numbers: str = "quarters"

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.pack(np.eye(2)))

    def rows(self, seed: int, rows: int = 30, columns: int = 40) -> Array:
        """Return rows that the container holds without rounding, in float64 and C order."""
        random = np.random.default_rng([seed, 77])
        if self.numbers == "bits":
            return (random.random((rows, columns)) < 0.3).astype(np.float64)
        X = random.integers(-4, 6, (rows, columns)) * (random.random((rows, columns)) < 0.5)
        return X / 4.0 if self.numbers == "quarters" else X.astype(np.float64)


def _memory_mapped(X: Array) -> Array:
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115  (removed as soon as it is closed)
    mapped = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped


def _unsorted_columns(X: Array) -> sp.coo_array:
    """Entries in random order, each as two halves."""
    A = sp.coo_array(X)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(A.nnz), 2))
    return sp.coo_array((A.data[order] / 2, (A.row[order], A.col[order])), shape=X.shape)


def _of_type(name: str, numbers: str = "quarters") -> Container:
    return Container(name, lambda X: X.astype(np.dtype(name)), numbers)


_TYPES = (
    *(_of_type(name) for name in (">f8", "<f8", "float16", "longdouble", "object")),
    *(_of_type(name, "whole") for name in ("int8", "int32", ">i4", "int64")),
    _of_type("uint8", "bits"),
    _of_type("bool", "bits"),
)
_OTHERS = (
    Container("list of lists", lambda X: X.tolist()),
    Container("tuple of arrays", tuple),
    Container("memory-mapped", _memory_mapped),
    Container("misaligned, Fortran", lambda X: unaligned(np.ascontiguousarray(X.T)).T),
    Container("no mask", np.ma.masked_array),
    Container("DataFrame", lambda X: pd.DataFrame(X).add_prefix("column ")),
    Container("DataFrame of whole numbers", lambda X: pd.DataFrame(X.astype(int)), "whole"),
    Container("COO, shuffled halves", _unsorted_columns),
    Container("CSR of bool", lambda X: sp.csr_array(X.astype(bool)), "bits"),
    Container("CSR of int", lambda X: sp.csr_array(X.astype(int)), "whole"),
)
CONTAINERS = {
    container.name: container
    for container in (
        *(Container(name, pack) for name, pack in {**LAYOUTS, **SPARSE}.items()),
        *_TYPES,
        *_OTHERS,
    )
}
