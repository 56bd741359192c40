"""Leaves the instruction set as it was found."""

from collections.abc import Iterator

import pytest

from powersketch import _native


@pytest.fixture
def restored_instruction_set() -> Iterator[None]:
    chosen = _native.instruction_set()
    yield
    _native.select_instruction_set(chosen)
