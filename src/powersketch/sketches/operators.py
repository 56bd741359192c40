"""What every base sketch T offers, and the checks that all sketches share."""

from typing import Protocol, Self

from powersketch.arrays import Real, Rows
from powersketch.exceptions import InputError
from powersketch.execution import check_fits_memory
from powersketch.random_streams import RandomStreams
from powersketch.routines import LARGEST_LENGTH

_FEWER_COMPONENTS = "choose a smaller n_components or internal_components"


class BaseSketch(Protocol):
    """A sampled linear map T: R^columns → R^size with E‖Tx‖² = ‖x‖²."""

    @property
    def columns(self) -> int:
        """The length of the longest row."""

    @property
    def size(self) -> int:
        """The number of outputs."""

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample an operator."""

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x; missing trailing columns of X count as zeros."""


def check_sizes(kind: str, inputs: int, size: int, drawn: int = 0) -> None:
    """Refuse operators without input or output, and those too large for an index or for memory.

    Drawing takes at least `drawn` bytes.
    """
    if inputs < 1 or size < 1:
        raise InputError(
            f"{kind} maps {inputs} coordinates to {size}: both must be at least 1; "
            "give data with at least one feature and ask for at least one component."
        )
    if size > LARGEST_LENGTH:
        raise InputError(
            f"{kind} would have {size} outputs; allowed are at most {LARGEST_LENGTH}: "
            f"{_FEWER_COMPONENTS}."
        )
    check_fits_memory(f"{kind} from {inputs} coordinates to {size}", drawn, _FEWER_COMPONENTS)


def check_columns(kind: str, given: int, columns: int) -> None:
    """Refuse rows longer than the operator's domain."""
    if given > columns:
        raise InputError(
            f"{kind} was drawn for rows of up to {columns} coordinates, got {given}: "
            "draw it with more columns."
        )
