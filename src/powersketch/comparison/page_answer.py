"""What a comparison comes to, in words: which method for which budget, and where ours loses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from powersketch.comparison.page_markup import Markup, element, joined, text
from powersketch.comparison.page_methods import MAIN
from powersketch.comparison.page_numbers import readable
from powersketch.comparison.results import Comparison, Measurement
from powersketch.comparison.units import seconds_text
from powersketch.exceptions import InputError

# A method that is so little worse than another one counts as its equal.
_EQUAL = 1.1


def answer_section(comparison: Comparison) -> Markup:
    """Return the answer: the best method, the one for every budget, and the place of ours."""
    working = [
        found
        for found in comparison.measurements
        if not found.failed and math.isfinite(found.frobenius)
    ]
    if not working:
        return element("p", text("No method has been measured: there is nothing to choose from."))
    return joined(
        element("p", text(f"{_overall(comparison)} {_main_in_brief(working)}".strip())),
        _listed("The most accurate method of every size", _by_size(working)),
        _listed("The most accurate method within a transform time", _by_time(working)),
        _listed(f"Where {MAIN}, the library’s main method, is not the best", _lost(working)),
    )


def _overall(comparison: Comparison) -> str:
    try:
        return comparison.best().reason
    except InputError as error:
        return str(error)


def _by_size(working: list[Measurement]) -> list[str]:
    """Return the best method of every stretch of sizes."""
    sizes = sorted({found.n_components for found in working})
    best = [_best(found for found in working if found.n_components == size) for size in sizes]
    return [
        f"{_range(str(first.n_components), str(last.n_components))} components: {first.method}, "
        f"error {_errors(first, last)}"
        for first, last in _stretches(best)
    ]


def _by_time(working: list[Measurement]) -> list[str]:
    """Return from which time on which method is the best one."""
    timed = [found for found in working if math.isfinite(found.seconds_per_row)]
    front: list[Measurement] = []
    for found in sorted(timed, key=lambda found: (found.seconds_per_row, found.frobenius)):
        if not front or found.frobenius < front[-1].frobenius:
            front.append(found)
    return [
        f"from {seconds_text(first.seconds_per_row)} per row: {first.method} with "
        f"{_range(str(first.n_components), str(last.n_components))} components, "
        f"error {_errors(first, last)}"
        for first, last in _stretches(front)
    ]


def _stretches(measurements: list[Measurement]) -> Iterator[tuple[Measurement, Measurement]]:
    """Yield the first and the last measurement of every stretch of one method."""
    for _, group in groupby(measurements, key=lambda found: found.method):
        stretch = list(group)
        yield stretch[0], stretch[-1]


def _errors(first: Measurement, last: Measurement) -> str:
    return _range(readable(first.frobenius), readable(last.frobenius))


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _main_in_brief(working: list[Measurement]) -> str:
    """Return how often the main method is as good as any, in one sentence."""
    own = [found for found in working if found.method == MAIN]
    if not own:
        return f"The library’s main method, {MAIN}, is not among the measured methods."
    of_kind = _as_good(own, lambda mine: _peers(working, mine, same_kind=True))
    of_all = _as_good(own, lambda mine: _peers(working, mine))
    in_time = _as_good(own, lambda mine: _not_slower(working, mine))
    return (
        f"At equal size, the library’s main method, {MAIN}, is the most accurate {own[0].kind} "
        f"method or within 10\u00a0% of it for {of_kind} of {len(own)} sizes, and of all methods "
        f"for {of_all} of {len(own)}; at equal transform time it is so for {in_time} of {len(own)}."
    )


def _lost(working: list[Measurement]) -> list[str]:
    """Return where another method is better by more than a tenth, at equal size or time."""
    own = [found for found in working if found.method == MAIN]
    lost = []
    for mine in own:
        other = _best(_peers(working, mine))
        if not _equals(mine, other):
            lost.append(
                f"{mine.n_components} components: {other.method} has error "
                f"{readable(other.frobenius)}, {MAIN} has {readable(mine.frobenius)}"
            )
    for mine in sorted(own, key=lambda found: found.seconds_per_row):
        other = _best(_not_slower(working, mine))
        if not _equals(mine, other):
            lost.append(
                f"{seconds_text(mine.seconds_per_row)} per row: {other.method} with "
                f"{other.n_components} components has error {readable(other.frobenius)}, "
                f"{MAIN} with {mine.n_components} has {readable(mine.frobenius)}"
            )
    return lost


def _as_good(own: list[Measurement], rivals: Callable[[Measurement], Iterable[Measurement]]) -> int:
    return sum(_equals(mine, _best(rivals(mine))) for mine in own)


def _equals(mine: Measurement, other: Measurement) -> bool:
    return mine.frobenius <= _EQUAL * other.frobenius


def _peers(
    working: list[Measurement], mine: Measurement, *, same_kind: bool = False
) -> list[Measurement]:
    return [
        found
        for found in working
        if found.n_components == mine.n_components and (found.kind == mine.kind or not same_kind)
    ]


def _not_slower(working: list[Measurement], mine: Measurement) -> list[Measurement]:
    others = [found for found in working if found.seconds_per_row <= mine.seconds_per_row]
    return others or [mine]


def _best(found: Iterable[Measurement]) -> Measurement:
    return min(found, key=lambda each: each.frobenius)


def _listed(title: str, entries: list[str]) -> Markup:
    if not entries:
        return Markup("")
    return joined(
        element("h3", text(title)),
        element("ul", *(element("li", text(entry)) for entry in entries)),
    )
