"""The order of evaluation of a tree, run on spans of leaves in place of vectors."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersketch.powers.tree_steps import Span, Step, halves, level, tree_steps

degrees = st.integers(1, 1024)
degree_sets = st.sets(degrees, min_size=1, max_size=24)


def run(steps: tuple[Step, ...]) -> tuple[list[int], int]:
    """Take the steps; return the degrees given, and how many vectors wait at most."""
    waiting: set[Span] = set()
    given, most = [], 0
    for step in steps:
        operands = halves(step.span) if level(step.span) else ()
        assert waiting.issuperset(operands)
        waiting -= set(step.finished)
        if step.degree is None:
            assert step.span not in waiting
            waiting.add(step.span)
        else:
            assert step.span == (0, step.degree)
            given.append(step.degree)
        most = max(most, len(waiting))
    assert not waiting
    return given, most


def padded_value(height: int, index: int, degree: int) -> Span | None:
    """The span of a node of the whole tree, in which leaves from `degree` on hold e₁."""
    first = index << height
    if first >= degree:
        return None
    if height == 0:
        return first, first + 1
    left = padded_value(height - 1, 2 * index, degree)
    right = padded_value(height - 1, 2 * index + 1, degree)
    if left is None or right is None:
        return left
    assert left[1] == right[0]
    assert halves((left[0], right[1])) == (left, right)
    return left[0], right[1]


class TestSpans:
    @given(degree=degrees)
    def test_are_what_a_padded_tree_computes(self, degree: int) -> None:
        height = math.ceil(math.log2(degree))
        assert padded_value(height, 0, degree) == (0, degree)
        assert padded_value(height + 2, 0, degree) == (0, degree)
        assert level((0, degree)) == height


class TestSteps:
    @given(degree=degrees)
    def test_one_degree_takes_its_leaves_and_one_product_less(self, degree: int) -> None:
        steps = tree_steps([degree])
        assert run(steps)[0] == [degree]
        leaves = [step.operator for step in steps if level(step.span) == 0]
        assert len(leaves) == degree
        assert len(steps) == 2 * degree - 1
        assert len({step.operator for step in steps}) == len(steps)

    @given(degree=degrees)
    def test_few_vectors_wait(self, degree: int) -> None:
        assert run(tree_steps([degree]))[1] <= level((0, degree)) + 1

    @given(wanted=degree_sets)
    def test_every_degree_is_given_once_and_in_order(self, wanted: set[int]) -> None:
        steps = tree_steps(wanted)
        assert run(steps)[0] == sorted(wanted)
        shared = [step.span for step in steps if step.degree is None]
        assert len(set(shared)) == len(shared)

    @given(wanted=degree_sets)
    def test_degrees_share_leaves_and_inner_nodes_but_no_root(self, wanted: set[int]) -> None:
        steps = tree_steps(wanted)
        names = {step.operator for step in steps if step.degree is None}
        for degree in wanted:
            *inner, last = tree_steps([degree])
            assert {step.operator for step in inner} <= names
            assert last.operator == f"root/{degree}"
        assert not any(name.startswith("root") for name in names)

    @pytest.mark.parametrize("highest", [2, 3, 8, 21, 64, 100, 512])
    def test_all_degrees_take_as_many_steps_as_root_paths_have(self, highest: int) -> None:
        steps = tree_steps(range(1, highest + 1))
        given, most = run(steps)
        assert given == list(range(1, highest + 1))
        height = level((0, highest))
        products = [step for step in steps if level(step.span)]
        assert len(products) <= highest * (height + 1)
        assert most <= 2 * height + 2

    def test_spans_of_one_node_share_its_operator(self) -> None:
        """Degrees 7 and 8 fill the same node to the right of the root, once in part."""
        names = {step.span: step.operator for step in tree_steps([7, 8]) if step.degree is None}
        assert names[4, 7] == names[4, 8] == "node/2/1"
        assert names[4, 6] == "node/1/2"
