"""The state as the outbox tells it: facts folded one by one, each move held against the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.simulation.violation import Violation
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import RunId, TaskKey

ENDINGS = frozenset({"SUCCEEDED", "FAILED", "SKIPPED", "UPSTREAM_FAILED", "CANCELLED"})
RUN_ENDINGS = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})

TASK_MOVES = {
    "PENDING": ("READY", "SKIPPED", "UPSTREAM_FAILED", "CANCELLED"),
    "READY": ("RUNNING", "FAILED", "CANCELLED"),
    # To CANCELLED from a pool, whose workers have not begun.
    "RUNNING": ("SUCCEEDED", "FAILED", "BACKOFF", "READY", "CANCELLING", "CANCELLED"),
    "BACKOFF": ("READY", "CANCELLED"),
    "CANCELLING": ("SUCCEEDED", "CANCELLED"),
    "FAILED": ("READY",),
    "SKIPPED": ("PENDING",),
    "UPSTREAM_FAILED": ("PENDING",),
    "CANCELLED": ("PENDING",),
}
RUN_MOVES = {
    "": ("PENDING", "RUNNING"),
    "PENDING": ("RUNNING", "PAUSED"),
    # To itself by a replay.
    "RUNNING": ("SUCCEEDED", "FAILED", "CANCELLED", "RUNNING", "PAUSED"),
    "PAUSED": ("PENDING", "RUNNING", "SUCCEEDED", "FAILED", "PAUSED"),
    "FAILED": ("RUNNING",),
    "CANCELLED": ("RUNNING",),
}


def legal_moves() -> Iterator[str]:
    """Every move that a large run of the simulator must have seen."""
    for kind, moves in (("task", TASK_MOVES), ("run", RUN_MOVES)):
        for before, afters in moves.items():
            for after in afters:
                yield f"{kind}: {before or 'new'} -> {after}"


class FoldedTask(NamedTuple):
    """A task as its facts tell it."""

    state: str = "PENDING"
    epoch: int = 0
    failures: int = 0
    losses: int = 0


class Step(NamedTuple):
    """One fact with the state that it met."""

    fact: Fact
    before: str
    task: FoldedTask | None  # as it was; None when the fact is about the run


class Fold:
    """Runs and tasks, rebuilt from facts."""

    def __init__(self) -> None:
        self.tasks: dict[TaskKey, FoldedTask] = {}
        self.runs: dict[RunId, tuple[str, int]] = {}
        self.moves: Counter[str] = Counter()

    def apply(self, fact: Fact) -> Step:
        """Take in one fact."""
        if fact.position is None:
            return self._apply_to_run(fact)
        key = TaskKey(fact.run_id, fact.position)
        before = self.tasks.get(key, FoldedTask())
        self.tasks[key] = FoldedTask(fact.state, fact.epoch, fact.failures, fact.losses)
        self.moves[f"task: {before.state} -> {fact.state}"] += 1
        return Step(fact, before.state, before)

    def state(self, key: TaskKey) -> str:
        """Where a task stands; one that no fact speaks of waits."""
        task = self.tasks.get(key)
        return "PENDING" if task is None else task.state

    def _apply_to_run(self, fact: Fact) -> Step:
        before = self.runs.get(fact.run_id, ("", 0))[0]
        self.runs[fact.run_id] = (fact.state, fact.generation)
        if fact.type is not FactType.WORKFLOW_STOPPING:
            self.moves[f"run: {before or 'new'} -> {fact.state}"] += 1
        return Step(fact, before, None)


def check_move(step: Step) -> Iterator[Violation]:
    """I1, I6, I8: a fact tells of a move that the state machines have."""
    fact, before = step.fact, step.before
    if fact.type is FactType.WORKFLOW_STOPPING:
        return
    moves, endings = (RUN_MOVES, RUN_ENDINGS) if step.task is None else (TASK_MOVES, ENDINGS)
    if fact.state in moves.get(before, ()):
        return
    name = f"{fact.run_id}/{fact.task or 'run'}"
    if before in endings and fact.state in endings:
        yield Violation("I1", f"{name} ended as {before}, and again as {fact.state}")
    elif before in endings:
        yield Violation("I8", f"{name} had ended as {before} and is {fact.state}")
    else:
        yield Violation("I6", f"{name} went from {before or 'nowhere'} to {fact.state}")
