"""What a row map is: a drawn feature map, and the same made ready for a format of rows."""

from typing import Protocol

from powersketch.exceptions import InputError
from powersketch.native import Real, Rows
from powersketch.powers import RowFormat


class BoundRowMap(Protocol):
    """A map ready for one dtype, dense or sparse."""

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`, all of its columns."""


class RowMap(Protocol):
    """A drawn feature map."""

    @property
    def name(self) -> str:
        """How the map came about."""

    def bind(self, rows: RowFormat) -> BoundRowMap:
        """Make the map ready for rows of one format."""


def overflow_error(dtype: object) -> ValueError:
    """Return the error for features of the literal sketch that exceed the dtype."""
    return InputError(
        f"the sketched features overflow {dtype}: without norm preservation the sketch's norm "
        "error is raised to the degree. Use norm_preserving=True, more n_components, or float64."
    )
