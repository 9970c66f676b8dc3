"""Cycles, compared with a simple oracle."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.cycles import Cycle, find_cycles

NAMES = [f"t{n}" for n in range(8)]
GRAPHS = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from([*NAMES, "nowhere"]), max_size=3) for name in NAMES}
)


def has_cycle(parents: dict[str, list[str]]) -> bool:
    try:
        TopologicalSorter(parents).prepare()
    except CycleError:
        return True
    return False


def without_self_loops(parents: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: [each for each in above if each != name] for name, above in parents.items()}


@given(GRAPHS)
def test_a_cycle_is_found_exactly_when_there_is_one(parents: dict[str, list[str]]) -> None:
    assert bool(list(find_cycles(parents))) == has_cycle(without_self_loops(parents))


@given(GRAPHS)
def test_every_cycle_named_is_one(parents: dict[str, list[str]]) -> None:
    for cycle in find_cycles(parents):
        rotated = (*cycle.tasks[1:], cycle.tasks[0])

        assert all(
            above in parents[below] for below, above in zip(cycle.tasks, rotated, strict=True)
        )
        assert cycle.parent in parents[cycle.child]


@given(GRAPHS)
def test_without_the_edges_named_no_cycle_is_left(parents: dict[str, list[str]]) -> None:
    edges = {(cycle.child, cycle.parent) for cycle in find_cycles(parents)}

    mended = {
        name: [each for each in above if (name, each) not in edges]
        for name, above in without_self_loops(parents).items()
    }

    assert not has_cycle(mended)


def test_two_cycles_through_one_task_are_both_named() -> None:
    parents = {"a": ["b", "c"], "b": ["a"], "c": ["a"]}

    assert [str(cycle) for cycle in find_cycles(parents)] == ["a → b → a", "a → c → a"]


def test_a_cycle_begins_with_its_first_task() -> None:
    assert str(Cycle(("a", "b"), child="b", parent="a")) == "a → b → a"
