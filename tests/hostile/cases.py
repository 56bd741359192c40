"""Single cases of the attack: how they are drawn from the table of promises, run and repeated."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.hostile.outcomes import Outcome
from tests.hostile.promises import PROMISES


class HostileCase(NamedTuple):
    """One check: names of the promise, the subject and the input, and a seed."""

    promise: str
    subject: str
    given: str
    seed: int

    def outcome(self) -> Outcome:
        """Run it."""
        return PROMISES[self.promise].outcome(self.subject, self.given, self.seed)

    def reproduction(self) -> str:
        """Return the command that runs this case alone."""
        names = " | ".join((self.promise, self.subject, self.given, str(self.seed)))
        return f'python -m tests.hostile --only "{names}"'


def cases(count: int, seed: int, pattern: str = "") -> list[HostileCase]:
    """Return that many cases, evenly from all promises: all pairs of one seed, then of the next."""
    queues = [_shuffled(name, seed) for name in PROMISES if pattern in name]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*map(_endless, queues)))
    return list(itertools.islice((case for case in turns if case is not None), count))


def full_product(seed: int, pattern: str = "") -> list[HostileCase]:
    """Return every pair of every promise once."""
    return [case for name in PROMISES if pattern in name for case in _shuffled(name, seed)]


def sample(promise: str) -> list[HostileCase]:
    """Return the cases of a promise for everyday's tests, with subjects and inputs evenly."""
    pairs, count = _shuffled(promise, 0), PROMISES[promise].cases_in_tests
    subjects = {case.subject for case in pairs}
    inputs = {case.given for case in pairs}
    uses: Counter[tuple[str, str]] = Counter()
    chosen = []
    for case in pairs:
        subject, given = ("subject", case.subject), ("input", case.given)
        if uses[subject] < -(-count // len(subjects)) and uses[given] < -(-count // len(inputs)):
            uses.update((subject, given))
            chosen.append(case)
    missing = {case.given: case for case in pairs if not uses["input", case.given]}
    return [*chosen, *missing.values()]


def _shuffled(promise: str, seed: int) -> list[HostileCase]:
    pairs = [HostileCase(promise, *pair, seed) for pair in PROMISES[promise].pairs()]
    random.Random(f"{promise} {seed}").shuffle(pairs)
    return pairs


def _endless(queue: list[HostileCase]) -> Iterator[HostileCase]:
    for turn in itertools.count():
        for case in queue:
            yield case._replace(seed=case.seed + turn)


def run(case: HostileCase) -> tuple[HostileCase, Outcome]:
    return case, case.outcome()


def single(text: str) -> HostileCase:
    """Return the case that a reproduction names."""
    promise, subject, given, seed = (part.strip() for part in text.split(" | "))
    return HostileCase(promise, subject, given, int(seed))
