"""The long attack: ``python -m tests.hostile`` runs thousands of cases and counts how they end."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator

from tests.hostile.cases import HostileCase, cases, full_product, run, single
from tests.hostile.outcomes import FAILED, HELD, REFUSED, Outcome

_CHUNK = 20
_WIDTH = 44


def attack(todo: list[HostileCase], jobs: int) -> int:
    """Run all cases, print failures as they come and counts at the end; return how many failed."""
    by_promise: Counter[tuple[str, str]] = Counter()
    by_subject: Counter[tuple[str, str]] = Counter()
    failures = 0
    for case, outcome in _outcomes(todo, jobs):
        by_promise[case.promise, outcome.verdict] += 1
        by_subject[case.subject, outcome.verdict] += 1
        if outcome.verdict == FAILED:
            failures += 1
            print(f"FAILED {case.reproduction()}  # {outcome.reason}", flush=True)
    _print_counts("promise", by_promise)
    _print_counts("subject", by_subject)
    return failures


def _outcomes(todo: list[HostileCase], jobs: int) -> Iterator[tuple[HostileCase, Outcome]]:
    if jobs == 1:
        yield from map(run, todo)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=50) as pool:
        yield from pool.imap_unordered(run, todo, _CHUNK)


def _print_counts(title: str, counts: Counter[tuple[str, str]]) -> None:
    verdicts = (HELD, REFUSED, FAILED)
    print(f"\n{title:{_WIDTH}} {'cases':>8} " + " ".join(f"{v:>8}" for v in verdicts))
    names = dict.fromkeys(name for name, _ in counts)
    for name in sorted(names):
        numbers = [counts[name, verdict] for verdict in verdicts]
        row = " ".join(f"{number:8d}" for number in (sum(numbers), *numbers))
        print(f"{name[:_WIDTH]:{_WIDTH}} {row}")
    totals = [sum(n for (_, v), n in counts.items() if v == verdict) for verdict in verdicts]
    print(f"{'total':{_WIDTH}} " + " ".join(f"{n:8d}" for n in (sum(totals), *totals)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--count", type=int, default=12_000, help="of cases; 0: every pair once")
    parser.add_argument("--seed", type=int, default=0, help="of the rows and of the order")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--promise", default="", help="only promises whose names contain this")
    parser.add_argument("--only", help='one case: "promise | subject | input | seed"')
    return parser.parse_args()


def main() -> int:
    """Run what the command line asks for; the exit code is 1 if anything failed."""
    given = _arguments()
    if given.only:
        todo = [single(given.only)]
    elif given.count:
        todo = cases(given.count, given.seed, given.promise)
    else:
        todo = full_product(given.seed, given.promise)
    return 1 if attack(todo, given.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
