"""The diagrams in docs/state_machine.md show exactly the moves that the code makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.domain.legal_moves import (
    Move,
    event_names,
    run_event_names,
    run_moves,
    task_moves,
)
from tidemill.domain.run import RUN_ENDED, RunState
from tidemill.domain.task_run import ENDED, TaskState

DOCUMENT = (Path(__file__).parents[2] / "docs" / "state_machine.md").read_text()
TASK_DIAGRAM, RUN_DIAGRAM = re.findall(r"```mermaid\n(.*?)```", DOCUMENT, re.DOTALL)
ARROW = re.compile(r"^ *(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)


def arrows_of(diagram: str) -> list[Move]:
    return [
        Move(before, event.strip(), after)
        for before, after, events in ARROW.findall(diagram)
        for event in events.split(",")
    ]


def moves_in(diagram: str) -> set[Move]:
    return {move for move in arrows_of(diagram) if "[*]" not in {move.before, move.after}}


def lines_under(title: str) -> list[str]:
    section = DOCUMENT.split(f"### {title}\n")[1].split("\n#")[0]
    return re.findall(r"^- `(\w+)`: \S", section, re.MULTILINE)


@pytest.mark.parametrize(
    ("diagram", "moves"), [(TASK_DIAGRAM, task_moves()), (RUN_DIAGRAM, run_moves())]
)
def test_the_diagram_shows_every_move_of_the_code_and_no_other(
    diagram: str, moves: set[Move]
) -> None:
    drawn = moves_in(diagram)

    assert moves - drawn == set(), "missing in the document"
    assert drawn - moves == set(), "not in the code"


@pytest.mark.parametrize("diagram", [TASK_DIAGRAM, RUN_DIAGRAM])
def test_every_line_of_a_diagram_is_an_arrow_and_none_is_drawn_twice(diagram: str) -> None:
    lines = [line for line in diagram.splitlines()[1:] if line.strip()]

    assert all(ARROW.match(line) for line in lines)
    assert len(set(arrows_of(diagram))) == len(arrows_of(diagram))


@pytest.mark.parametrize(
    ("diagram", "first", "endings"),
    [
        (TASK_DIAGRAM, TaskState.PENDING, ENDED),
        (RUN_DIAGRAM, RunState.PENDING, RUN_ENDED),
    ],
)
def test_the_diagram_begins_and_ends_where_the_code_does(
    diagram: str, first: str, endings: frozenset[str]
) -> None:
    arrows = arrows_of(diagram)

    assert [move.after for move in arrows if move.before == "[*]"] == [first]
    assert {move.before for move in arrows if move.after == "[*]"} == endings


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("States of a task", [state.value for state in TaskState]),
        ("States of a run", [state.value for state in RunState]),
        ("Events of a task", event_names()),
        ("Events of a run", run_event_names()),
    ],
)
def test_every_state_and_every_event_has_one_line(title: str, names: list[str]) -> None:
    assert sorted(lines_under(title)) == sorted(names)


def test_ended_tasks_are_left_by_a_replay_only() -> None:
    leaving = {move.event for move in task_moves() if move.before in ENDED}

    assert leaving == {"Replayed", "Reopened"}
