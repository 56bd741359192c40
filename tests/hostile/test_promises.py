"""Every promise on an even sample of its cases; ``python -m tests.hostile`` has all of them."""

from __future__ import annotations

import pytest

from tests.hostile.cases import HostileCase, sample
from tests.hostile.outcomes import FAILED
from tests.hostile.promises import PROMISES


@pytest.mark.parametrize(
    "case",
    [case for promise in PROMISES for case in sample(promise)],
    ids=lambda case: "-".join(case[:3]),
)
def test_promise(case: HostileCase) -> None:
    outcome = case.outcome()
    assert outcome.verdict != FAILED, f"{outcome.reason}\n{case.reproduction()}"
