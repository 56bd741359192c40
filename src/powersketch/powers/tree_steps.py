"""The order in which a binary tree of sketches is evaluated, for one degree or for several.

Degree l fills the leaves 0 … l − 1 with the row; all further leaves hold e₁. A subtree of such
padding has the known value e₁, so the other child of its parent is passed through unchanged: it is
as if the parent were not there. What is left is one vector for a span of neighbouring leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Leaves first … stop − 1; the vector of a span is a sketch of the power of degree stop − first."""


@dataclass(frozen=True)
class Step:
    """One vector: that of a leaf, or S applied to the vectors of both halves of the span.

    Attributes
    ----------
    span : Span
        The leaves below.
    operator : str
        Name of the T or S to apply. Steps of the same name share it.
    degree : int or None
        The degree whose features the vector gives; None if other steps need it.
    finished : tuple of Span
        The vectors that no later step needs.
    """

    span: Span
    operator: str
    degree: int | None
    finished: tuple[Span, ...]


def level(span: Span) -> int:
    """Return the height of the smallest full subtree that holds the span; leaves have height 0.

    >>> level((3, 4)), level((4, 7)), level((0, 9))
    (0, 2, 4)
    """
    return (span[1] - span[0] - 1).bit_length()


def halves(span: Span) -> tuple[Span, Span]:
    """Return what lies in the left and in the right child of that subtree's root.

    >>> halves((0, 5)), halves((4, 7))
    (((0, 4), (4, 5)), ((4, 6), (6, 7)))
    """
    middle = span[0] + (1 << level(span)) // 2
    return (span[0], middle), (middle, span[1])


def tree_steps(degrees: Iterable[int]) -> tuple[Step, ...]:
    """Return the steps for some degrees, each vector as late as possible and only once.

    A degree's last step has an operator of its own, because its features have their own size, and
    because then the sampling errors of that step are independent between degrees. All other steps
    are shared: there are O(q log q) of them for all degrees up to q, of which O(log q) vectors
    are waited for at any time.

    >>> for step in tree_steps([3]):
    ...     print(step.operator, step.span, step.degree)
    leaf/0 (0, 1) None
    leaf/1 (1, 2) None
    node/1/0 (0, 2) None
    leaf/2 (2, 3) None
    root/3 (0, 3) 3
    """
    order: list[tuple[Span, int | None]] = []
    known: set[Span] = set()
    for degree in sorted(degrees):
        for operand in _operands((0, degree)):
            _append_missing(operand, order, known)
        order.append(((0, degree), degree))
    last_use = {
        operand: position for position, (span, _) in enumerate(order) for operand in _operands(span)
    }
    return tuple(
        Step(span, _name(span, degree), degree, _finished(span, position, last_use))
        for position, (span, degree) in enumerate(order)
    )


def _operands(span: Span) -> tuple[Span, ...]:
    return halves(span) if level(span) else ()


def _append_missing(span: Span, order: list[tuple[Span, int | None]], known: set[Span]) -> None:
    """Append the steps of a subtree, depth first, that are not there yet."""
    if span in known:
        return
    known.add(span)
    for operand in _operands(span):
        _append_missing(operand, order, known)
    order.append((span, None))


def _finished(span: Span, position: int, last_use: dict[Span, int]) -> tuple[Span, ...]:
    return tuple(operand for operand in _operands(span) if last_use[operand] == position)


def _name(span: Span, degree: int | None) -> str:
    if degree is not None:
        return f"root/{degree}"
    height = level(span)
    return f"node/{height}/{span[0] >> height}" if height else f"leaf/{span[0]}"
