"""The invariants, checked from what the chaos left behind. Names as in docs/simulator.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from tests.chaos.evidence import Evidence
from tests.chaos.shapes import SHAPES
from tests.simulation.fold import ENDINGS, RUN_ENDINGS, FoldedTask, Step, check_move
from tests.simulation.violation import Violation
from tidemill.domain.identifiers import TaskKey, Token

EXECUTED = frozenset({"SUCCEEDED", "FAILED"})


def check_nothing_lost(evidence: Evidence) -> Iterator[Violation]:
    """I2, I13: every accepted run is there and has ended, and nobody started one twice."""
    for run_id in evidence.accepted - evidence.runs.keys():
        yield Violation("I2", f"run {run_id} was accepted and is gone")
    for run_id, run in evidence.runs.items():
        if run.state not in RUN_ENDINGS:
            yield Violation("I2", f"run {run_id} ({run.workflow}) is still {run.state}")
        if run.quarantine is not None:
            yield Violation("I13", f"run {run_id} is in quarantine: {run.quarantine}")
        if run_id not in evidence.accepted and evidence.keys[run_id]:
            yield Violation("I13", f"run {run_id} has a key, and nobody was told of it")
    for run_id, keys in evidence.keys.items():
        if keys > 1:
            yield Violation("I13", f"{keys} keys point at run {run_id}")
    if evidence.twice_differed:
        yield Violation("I13", f"{evidence.twice_differed} repeated submissions began other runs")


def check_single_outcomes(evidence: Evidence) -> Iterator[Violation]:
    """I1, I3, I8: each task and run moves as the state machines say, and ends once."""
    endings: Counter[TaskKey] = Counter()
    for step in evidence.steps:
        if not _is_grant_that_nobody_took_up(step, evidence):
            yield from check_move(step)
        if step.task is None:
            continue
        fact = step.fact
        key = TaskKey(fact.run_id, fact.position or 0)
        endings[key] += fact.state in ENDINGS
        rise = 1 if fact.state == "RUNNING" else 0
        if fact.epoch != step.task.epoch + rise:
            yield Violation("I3", f"{key} is {fact.state} with epoch {fact.epoch}")
    for key, count in endings.items():
        if count > 1:
            yield Violation("I1", f"{key} ended {count} times")
    for key, row in evidence.tasks.items():
        if row.state in ENDINGS and not endings[key]:
            yield Violation("I6", f"{key} is {row.state}, and no fact tells it")


def _is_grant_that_nobody_took_up(step: Step, evidence: Evidence) -> bool:
    """A grant still waiting at the broker is cancelled without asking any worker to stop."""
    fact = step.fact
    token = Token(fact.run_id, fact.position or 0, fact.epoch)
    at_once = (step.before, fact.state) == ("RUNNING", "CANCELLED")
    return step.task is not None and at_once and token not in evidence.marks


def check_tables(evidence: Evidence) -> Iterator[Violation]:
    """H1, I6: the tables are what the facts fold to."""
    for key, row in evidence.tasks.items():
        folded = evidence.fold.tasks.get(key, FoldedTask())
        if (row.state, row.epoch, row.failures, row.losses) != tuple(folded):
            yield Violation("H1", f"{key} is {row[:4]}, facts say {tuple(folded)}")
        kept = evidence.epochs_kept.get(key, [])
        if row.state in EXECUTED and kept != list(range(1, row.epoch)):
            yield Violation("H1", f"{key} has epoch {row.epoch}, its earlier attempts are {kept}")
    for run_id, run in evidence.runs.items():
        told = evidence.fold.runs.get(run_id, ("", 0))[0]
        if told != run.state:
            yield Violation("H1", f"run {run_id} is {run.state}, facts say {told or 'nothing'}")


def check_executions(evidence: Evidence) -> Iterator[Violation]:
    """I3, I4: no grant is executed twice, and nothing is executed or ends without a grant."""
    granted = {
        Token(step.fact.run_id, step.fact.position or 0, step.fact.epoch)
        for step in evidence.steps
        if step.task is not None and step.fact.state == "RUNNING"
    }
    for token, count in evidence.marks.items():
        if count > 1:
            yield Violation("I4", f"the body of {token} was executed {count} times")
        if token not in granted:
            yield Violation("I15", f"{token} was executed and never granted")
    for key, row in evidence.tasks.items():
        token = Token(key.run_id, key.position, row.epoch)
        if row.state == "SUCCEEDED" and token not in evidence.marks:
            yield Violation("I1", f"{token} succeeded without being executed")
    for text in evidence.wrong_marks:
        yield Violation("I15", text)


def check_results(evidence: Evidence) -> Iterator[Violation]:
    """I5, I13: runs end as their shape says, and results are what the parents' results lead to."""
    for run_id, run in evidence.runs.items():
        shape = SHAPES[run.workflow]
        if run.state in RUN_ENDINGS and run.state not in shape.endings:
            yield Violation("I13", f"run {run_id} ({run.workflow}) ended as {run.state}")
        if run.state == "CANCELLED" and run_id not in evidence.cancelled:
            yield Violation("I13", f"run {run_id} is cancelled, and nobody asked for it")
        expected = shape.results(run.salt)
        for position in range(len(shape.workflow.tasks)):
            row = evidence.tasks.get(TaskKey(run_id, position))
            if row is None:
                yield Violation("I13", f"run {run_id} has no task {position}")
            elif row.state == "SUCCEEDED" and row.result != expected.get(position):
                text = f"returned {row.result}, not {expected.get(position)}"
                yield Violation("I5", f"run {run_id} ({run.workflow}): task {position} {text}")
            elif run.state == "SUCCEEDED" and row.state != "SUCCEEDED":
                yield Violation("I13", f"run {run_id} succeeded, task {position} is {row.state}")


def check_dependencies(evidence: Evidence) -> Iterator[Violation]:
    """I5: no task is granted before its parents have succeeded."""
    ended: dict[TaskKey, str] = {}
    for step in evidence.steps:
        fact = step.fact
        if fact.position is None:
            continue
        key = TaskKey(fact.run_id, fact.position)
        if fact.state in ENDINGS:
            ended[key] = fact.state
        if fact.state != "RUNNING":
            continue
        for parent in SHAPES[fact.workflow].parents(fact.position):
            if ended.get(TaskKey(fact.run_id, parent)) != "SUCCEEDED":
                yield Violation("I5", f"{key} began before its parent {parent} had succeeded")


def check_outbox(evidence: Evidence) -> Iterator[Violation]:
    """I6: every fact has its place, and the places are dense."""
    if evidence.unstamped:
        yield Violation("I6", f"{evidence.unstamped} rows of the outbox have no position")
    if evidence.positions != evidence.position_max:
        text = f"{evidence.positions} positions up to {evidence.position_max}"
        yield Violation("I6", f"positions of the outbox are not dense: {text}")


Check = Callable[[Evidence], Iterator[Violation]]
CHECKS: tuple[Check, ...] = (
    check_nothing_lost,
    check_single_outcomes,
    check_tables,
    check_executions,
    check_results,
    check_dependencies,
    check_outbox,
)


def check_all(evidence: Evidence) -> list[Violation]:
    """Everything that does not hold."""
    return [violation for check in CHECKS for violation in check(evidence)]
