"""What `n_components="auto"` needs of a feature map: its parameters, and maps to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from powersketch.arrays import Real, Rows
from powersketch.exceptions import InputError
from powersketch.execution import Progress
from powersketch.feature_maps.batches import transform_rows
from powersketch.feature_maps.row_maps import RowMap
from powersketch.kernels import Kernel
from powersketch.parameters import checked_fraction, checked_integer
from powersketch.routines import LARGEST_LENGTH


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """A row map of one size, and the kernel that it approximates, to be measured."""

    kernel_: Kernel
    row_map: RowMap
    size: int
    threads: int

    def transform(self, X: Rows) -> Real:
        """Return the features of every row."""
        silent = Progress("", X.shape[0], 0)
        return transform_rows(self.row_map, X, self.size, threads=self.threads, progress=silent)[0]


def checked_size(n_components: Any, eps: Any) -> int | None:
    """Return the number of components, None for "auto", or say what is wrong with the pair."""
    if isinstance(n_components, str) and n_components == "auto":
        if eps is None:
            raise InputError(
                "n_components='auto' needs the relative error to keep, a number between 0 and 1: "
                "pass for instance eps=0.05, or give n_components as an integer."
            )
        checked_fraction("eps", eps, remedy="0.05 keeps Z Zᵀ within 5 % of K")
        return None
    remedy = "100 is the default, and 'auto' together with eps chooses it"
    size = checked_integer("n_components", n_components, 1, remedy=remedy)
    if size > LARGEST_LENGTH:
        checked_integer("n_components", size, 1, LARGEST_LENGTH, remedy=remedy)
    if eps is not None:
        raise InputError(
            f"eps={eps!r} has no meaning with n_components={size}; "
            "pass n_components='auto' to have the number chosen for eps, or leave eps out."
        )
    return size
