"""Which method is the best for a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from powersketch.comparison.page_numbers import readable
from powersketch.comparison.units import bytes_text, seconds_text
from powersketch.exceptions import InputError
from powersketch.parameters import checked_integer, checked_positive, one_of

if TYPE_CHECKING:
    from powersketch.comparison.results import Comparison, Measurement

_NORMS = {"frobenius": "Frobenius", "operator": "operator norm"}


@dataclass(frozen=True)
class Recommendation:
    """The most accurate method within a budget.

    Parameters
    ----------
    method : str
        Its name.
    n_components : int
        Its number of features.
    error : float
        Its relative error.
    norm : {"frobenius", "operator"}
        The norm of the error.
    reason : str
        A sentence that says so.
    """

    method: str
    n_components: int
    error: float
    norm: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(vars(self))


def recommended(
    comparison: Comparison,
    *,
    components: int | None,
    seconds: float | None,
    memory: int | None,
    norm: str,
) -> Recommendation:
    """Return the measurement of the smallest error within the limits, the fastest among equals."""
    one_of("norm", norm, tuple(_NORMS))
    limits = _limits(comparison.data_shape[0], components, seconds, memory)
    working = [found for found in comparison.measurements if not found.failed]
    if not working:
        raise InputError("no method has been measured: there is nothing to choose from.")
    within = working
    for limit in limits:
        _check_any_fits(within, limit)
        within = [found for found in within if limit.used(found) <= limit.most]

    def error(found: Measurement) -> float:
        return found.frobenius if norm == "frobenius" else found.operator_norm

    best = min(within, key=lambda found: (error(found), found.transform_seconds))
    budget = " and ".join(limit.text(limit.most) for limit in limits)
    reason = (
        f"{best.method} with {best.n_components} components has the smallest relative "
        f"{_NORMS[norm]} error, {readable(error(best))}, of the {len(within)} measured"
        f"{' within ' + budget if budget else ''}."
    )
    return Recommendation(best.method, best.n_components, error(best), norm, reason)


@dataclass(frozen=True)
class _Limit:
    name: str
    most: float
    used: Callable[[Measurement], float]
    text: Callable[[float], str]


def _limits(
    rows: int, components: int | None, seconds: float | None, memory: int | None
) -> list[_Limit]:
    limits = []
    if components is not None:
        most = checked_integer("components", components, 1)
        limits.append(
            _Limit(
                "components", most, lambda found: found.n_components, lambda x: f"{x:g} features"
            )
        )
    if seconds is not None:
        most_seconds = checked_positive("transform_seconds", seconds)
        limits.append(
            _Limit(
                "transform_seconds",
                most_seconds,
                lambda found: found.seconds_for(rows),
                lambda x: f"{seconds_text(x)} for {rows} rows",
            )
        )
    if memory is not None:
        most_bytes = checked_integer("memory_bytes", memory, 1)
        limits.append(
            _Limit(
                "memory_bytes",
                most_bytes,
                lambda found: found.bytes_for(rows),
                lambda x: f"{bytes_text(x)} for {rows} rows",
            )
        )
    return limits


def _check_any_fits(candidates: list[Measurement], limit: _Limit) -> None:
    """Refuse a limit that nothing is within."""
    leanest = min(candidates, key=limit.used)
    if limit.used(leanest) > limit.most:
        raise InputError(
            f"{limit.name}={limit.most:g} is too little for all that was measured; the least is "
            f"{limit.text(limit.used(leanest))}, by {leanest.method} with "
            f"{leanest.n_components} components: allow that much, or compare smaller components."
        )
