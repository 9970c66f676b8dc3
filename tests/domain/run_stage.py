"""A stage for whole runs: a dict for a database, and turns that go through ledgers.

Each turn opens a new ledger, so nothing survives between turns but what was written: every turn
boundary is a crash. What is written is checked each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tests.builders import NOON, a_run
from tests.domain.invariants import assert_sound
from tests.domain.legal_moves import run_moves, task_moves
from tidemill.domain.events import Event
from tidemill.domain.fact_builders import run_fact
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import SECOND
from tidemill.domain.ledger import STOPPABLE, Journal, Ledger
from tidemill.domain.plan import Plan
from tidemill.domain.readiness import tally_of
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.run_transitions import PauseAsked, ResumeAsked, RunEvent, advance_run
from tidemill.domain.task_run import ENDED, PAUSED, Attempt, Reason, TaskRun, TaskState

LOADS_MAX = 100
PATHS = {(move.before, move.after) for move in task_moves()}
RUN_PATHS = {(move.before, move.after) for move in run_moves()}

Act: TypeAlias = Callable[[Ledger], None]


class Stage:
    """One run, all that is stored of it, and the bound of its turns."""

    def __init__(self, plan: Plan, rows_max: int) -> None:
        self.plan = plan
        self.rows_max = rows_max
        self.now = NOON
        self.run: Run = a_run(state=RunState.PENDING, open=len(plan.nodes), next_position=0)
        self.tasks: dict[int, TaskRun] = {}
        self.facts: list[Fact] = []
        self.attempts: list[Attempt] = []
        self._told: dict[int | None, str] = {None: RunState.PENDING}

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.run.state in RUN_ENDED

    @property
    def untold(self) -> list[TaskRun]:
        """Ended tasks with children left to tell."""
        return [task for _, task in sorted(self.tasks.items()) if task.told is not None]

    def states(self) -> dict[int, TaskState]:
        """Where every written task stands."""
        return {position: task.state for position, task in self.tasks.items()}

    def in_state(self, *states: TaskState) -> list[int]:
        """Positions of the tasks in these states."""
        return [position for position, task in sorted(self.tasks.items()) if task.state in states]

    def is_held(self, position: int) -> bool:
        """Whether a task may not be granted, although it is READY."""
        task = self.tasks[position]
        paused = self.run.state is RunState.PAUSED or task.hold == PAUSED
        return task.state is TaskState.READY and paused

    def turn(
        self, act: Act = lambda _: None, *, take_up: bool = True, crash: bool = False
    ) -> Ledger:
        """One transaction: what `act` lets happen and all that follows; a crash writes nothing."""
        self.now += SECOND
        ledger = Ledger(self.run, self.plan, self.now, lambda: 0.5, self.rows_max, Journal())
        take_up = take_up and self.run.state in {RunState.RUNNING, RunState.PAUSED}
        if take_up:
            ledger.supply(self.untold[: self.rows_max])
        act(ledger)
        self._follow(ledger)
        if ledger.must_stop_tasks or (ledger.is_stopping and take_up):
            self._stop_tasks(ledger)
        elif ledger.run.swept is not None and take_up:
            self._sweep(ledger)
        ledger.settle()
        if not crash:
            self.write(ledger)
        return ledger

    def happen(
        self, *events: tuple[int, Event], take_up: bool = True, crash: bool = False
    ) -> Ledger:
        """One turn in which these events reach their tasks."""

        def act(ledger: Ledger) -> None:
            ledger.supply(self.tasks[position] for position, _ in events)
            for position, event in events:
                ledger.happen(position, event)

        return self.turn(act, take_up=take_up, crash=crash)

    def stop(self, reason: Reason) -> None:
        """One transaction that does no more than ask for a stop."""
        ledger = Ledger(self.run, self.plan, self.now, lambda: 0.5, self.rows_max, Journal())
        ledger.stop(reason)
        self.write(ledger)

    def ask(self, event: RunEvent, kind: FactType) -> None:
        """One transaction that changes the row of the run alone, as pausing and resuming do."""
        before = self.run
        self.run = advance_run(before, event, self.now)
        if self.run != before:
            self._fold([run_fact(self.run, kind, self.now)])

    def pause(self) -> None:
        """Ask for a pause."""
        self.ask(PauseAsked(), FactType.WORKFLOW_PAUSED)

    def resume(self) -> None:
        """Ask to go on."""
        self.ask(ResumeAsked(), FactType.WORKFLOW_RESUMED)

    def _follow(self, ledger: Ledger) -> None:
        """Work out what follows, handing the ledger the rows that it wants and no others."""
        if ledger.run.state is RunState.PENDING:
            ledger.unfold()
        for _ in range(LOADS_MAX):
            ledger.tell()
            wanted = ledger.wanted()
            assert len(wanted) == len(set(wanted)) <= max(0, ledger.rows_left)
            rows = [self.tasks[position] for position in wanted if position in self.tasks]
            if not rows:
                break
            ledger.supply(rows)

    def _stop_tasks(self, ledger: Ledger) -> None:
        limit = max(ledger.rows_left, 1)
        rows = [self.tasks[position] for position in self.in_state(*STOPPABLE)][:limit]
        ledger.stop_tasks(rows, more=len(rows) == limit)
        ledger.tell()

    def _sweep(self, ledger: Ledger) -> None:
        limit = max(ledger.rows_left, 1)
        ready = [self.tasks[place] for place in self.in_state(TaskState.READY)]
        start, paused = ledger.run.swept or 0, not ledger.is_paused
        rows = [one for one in ready if one.position >= start and (one.hold == PAUSED) == paused]
        ledger.sweep(rows[:limit], more=len(rows) >= limit)

    def write(self, ledger: Ledger) -> None:
        """Store what changed, once it has been checked."""
        changed = ledger.changed_tasks()
        assert [task.position for task in changed] == sorted({task.position for task in changed})
        assert {task.position for task in ledger.journal.new_tasks}.isdisjoint(self.tasks)
        for task in [*ledger.journal.new_tasks, *changed]:
            assert_sound(task, self.plan.nodes[task.node])
            self._told.setdefault(task.position, TaskState.PENDING)
            self.tasks[task.position] = task
        self.run = ledger.changed_run() or self.run
        self.attempts += ledger.journal.attempts
        self._fold(ledger.journal.facts)
        self._check()

    def _fold(self, facts: Iterable[Fact]) -> None:
        """Every change of state is told by one fact: what the facts say is what is stored."""
        for fact in facts:
            self.facts.append(fact)
            before = self._told[fact.position]
            if fact.position is not None:
                assert fact.state != before, f"told twice: {fact}"
            paths = RUN_PATHS if fact.position is None else PATHS
            assert (before, fact.state) in paths, f"no way from {before}: {fact}"
            self._told[fact.position] = fact.state
        tasks = {place: state for place, state in self._told.items() if place is not None}
        assert tasks == self.states(), "a change that no fact tells"
        assert self._told[None] == self.run.state

    def _check(self) -> None:
        unwritten = len(self.plan.nodes) - len(self.tasks)
        states = list(self.states().values())
        assert self.run.open == unwritten + sum(state not in ENDED for state in states)
        assert self.run.failed == states.count(TaskState.FAILED)
        assert self.run.next_position == len(self.tasks)
        assert self.ended == (self.run.open == 0), "a run ends with its last task, not before"
        numbers = [task.ended_no for task in self.tasks.values() if task.state in ENDED]
        assert len(set(numbers)) == len(numbers)
        assert all(number is not None and 1 <= number <= self.run.ended for number in numbers)
        epochs = [(attempt.position, attempt.epoch) for attempt in self.attempts]
        assert len(set(epochs)) == len(epochs), "one row of history per grant"
        if self.run.stop is None:
            self._check_counters()

    def _check_counters(self) -> None:
        for position in self.in_state(TaskState.PENDING):
            task = self.tasks[position]
            parents = (self.tasks.get(one) for one in self.plan.nodes[position].parents)
            tally = tally_of(
                parent.state if parent and self._has_told(parent, position) else None
                for parent in parents
            )
            assert (task.waiting, task.failed, task.skipped) == tally

    def _has_told(self, parent: TaskRun, child: int) -> bool:
        if parent.state not in ENDED or parent.told is None:
            return parent.state in ENDED
        return child in self.plan.nodes[parent.node].children[: parent.told]
