"""The checks of the chaos would notice: a clean story passes, and each way to spoil it is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.chaos.checks import check_all
from tests.chaos.evidence import Evidence, RunRow, TaskRow
from tests.chaos.faults import HASTY_LINES, LINES, script
from tests.chaos.listener import Listener
from tests.chaos.report import find_complaints
from tests.chaos.shapes import SHAPES
from tests.simulation.fold import FoldedTask
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import RunId, TaskKey, Token

RUN = RunId("00000000-0000-7000-8000-000000000001")
SALT = 7
POSITIONS = range(3)


def a_story() -> Evidence:
    """A chain that ran without a fault."""
    evidence = Evidence(positions=4, position_max=4, accepted={RUN})
    evidence.keys[RUN] = 1
    results = SHAPES["chain"].results(SALT)
    tell(evidence, "RUNNING", FactType.WORKFLOW_STARTED)
    for position in POSITIONS:
        for state, epoch in (("READY", 0), ("RUNNING", 1), ("SUCCEEDED", 1)):
            tell(evidence, state, FactType.TASK_READY, position, epoch)
        evidence.tasks[TaskKey(RUN, position)] = TaskRow("SUCCEEDED", 1, 0, 0, results[position])
        evidence.marks[Token(RUN, position, 1)] = 1
    tell(evidence, "SUCCEEDED", FactType.WORKFLOW_COMPLETED)
    evidence.runs[RUN] = RunRow("chain", "SUCCEEDED", SALT, None, 1, 2)
    return evidence


def tell(
    evidence: Evidence, state: str, kind: FactType, position: int | None = None, epoch: int = 0
) -> None:
    fact = Fact(
        type=kind, namespace="default", run_id=RUN, workflow="chain", at=1, state=state,
        position=position, epoch=epoch,
    )  # fmt: skip
    evidence.steps.append(evidence.fold.apply(fact))


def lose(evidence: Evidence) -> None:
    del evidence.runs[RUN]


def leave_open(evidence: Evidence) -> None:
    evidence.runs[RUN] = evidence.runs[RUN]._replace(state="RUNNING")


def end_twice(evidence: Evidence) -> None:
    tell(evidence, "SUCCEEDED", FactType.TASK_COMPLETED, 2, 1)


def raise_no_epoch(evidence: Evidence) -> None:
    evidence.fold.tasks[TaskKey(RUN, 2)] = FoldedTask("READY", 1, 0, 0)
    tell(evidence, "RUNNING", FactType.TASK_STARTED, 2, 1)


def execute_twice(evidence: Evidence) -> None:
    evidence.marks[Token(RUN, 1, 1)] += 1


def execute_ungranted(evidence: Evidence) -> None:
    evidence.marks[Token(RUN, 1, 9)] = 1


def execute_never(evidence: Evidence) -> None:
    del evidence.marks[Token(RUN, 1, 1)]


def return_another_result(evidence: Evidence) -> None:
    evidence.tasks[TaskKey(RUN, 1)] = TaskRow("SUCCEEDED", 1, 0, 0, 4711)


def begin_before_the_parent(evidence: Evidence) -> None:
    evidence.steps.insert(1, evidence.steps[8])


def lose_a_row_of_the_outbox(evidence: Evidence) -> None:
    evidence.positions -= 1


def differ_from_the_facts(evidence: Evidence) -> None:
    evidence.tasks[TaskKey(RUN, 1)] = evidence.tasks[TaskKey(RUN, 1)]._replace(losses=1)


def lose_an_attempt(evidence: Evidence) -> None:
    evidence.epochs_kept[TaskKey(RUN, 1)] = [1]


def cancel_unasked(evidence: Evidence) -> None:
    evidence.runs[RUN] = evidence.runs[RUN]._replace(workflow="hasty", state="CANCELLED")


def start_another_for_the_same_key(evidence: Evidence) -> None:
    evidence.twice_differed = 1


def test_a_clean_story_passes() -> None:
    assert check_all(a_story()) == []


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (lose, "I2"),
        (leave_open, "I2"),
        (end_twice, "I1"),
        (raise_no_epoch, "I3"),
        (execute_twice, "I4"),
        (execute_ungranted, "I15"),
        (execute_never, "I1"),
        (return_another_result, "I5"),
        (begin_before_the_parent, "I5"),
        (lose_a_row_of_the_outbox, "I6"),
        (differ_from_the_facts, "H1"),
        (lose_an_attempt, "H1"),
        (cancel_unasked, "I13"),
        (start_another_for_the_same_key, "I13"),
    ],
)
def test_a_spoiled_story_is_noticed(spoil: Callable[[Evidence], None], invariant: str) -> None:
    evidence = a_story()

    spoil(evidence)

    assert invariant in {violation.invariant for violation in check_all(evidence)}


@pytest.mark.parametrize(
    ("arrived", "complete", "violations"),
    [
        (["1.0", "1.1", "2.0"], True, 0),
        (["1.0", "2.0", "1.1"], True, 1),
        (["1.0", "2.0"], True, 1),
        (["1.0", "2.0"], False, 0),
    ],
)
def test_what_arrives_late_or_never_is_noticed(
    arrived: list[str], complete: bool, violations: int
) -> None:
    listener = Listener()
    listener.seen[RUN] = arrived

    found = listener.check({RUN: ["1.0", "1.1", "2.0"]}, complete=complete)

    assert len(found) == violations


def test_complaints_in_logs_are_counted() -> None:
    logs = {"scheduler-1": "fine\nTraceback (most recent call last):\n  File\n", "worker-1": "fine"}

    assert find_complaints(logs) == {"traceback": 1}


def test_the_same_seed_makes_the_same_script() -> None:
    assert script(1, 600) == script(1, 600)
    assert script(1, 600) != script(2, 600)


@pytest.mark.parametrize("seed", range(20))
def test_half_an_hour_has_every_fault_often_and_half_a_minute_has_every_fault(seed: int) -> None:
    long = [fault.name for fault in script(seed, 1_800)]
    short = {fault.name for fault in script(seed, 30, HASTY_LINES)}

    assert all(long.count(f"{line.role}_{line.kind}") >= 10 for line in LINES)
    assert short == {f"{line.role}_{line.kind}" for line in HASTY_LINES}
