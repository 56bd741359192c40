"""What a row map is: a drawn feature map that writes the features of rows."""

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows
from powersketch.exceptions import InputError

# How far every row of a batch is from those that the map was made for; None if it is as good for
# all rows. Rows without a series are too long for the finite series that stands for the kernel.
Strangeness: TypeAlias = NDArray[np.int8] | None
ORDINARY, UNUSUAL, OUT_OF_RANGE, WITHOUT_SERIES = range(4)


class RowMap(Protocol):
    """A drawn feature map."""

    @property
    def name(self) -> str:
        """How the map came about."""

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`, all of its columns."""


def overflow_error(dtype: object) -> ValueError:
    """Return the error for features of the literal sketch that exceed the dtype."""
    return InputError(
        f"the sketched features overflow {dtype}: without norm preservation the sketch's norm "
        "error is raised to the degree. Use norm_preserving=True, more n_components, or float64."
    )
