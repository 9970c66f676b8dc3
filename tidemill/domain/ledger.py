"""The ledger: the working copy of one run during one turn.

A turn locks a run, opens its ledger, supplies the rows that the ledger wants, lets events happen
and writes back what changed. What follows from an ending (children told, tasks that can no longer
run, the run's own end) is worked out here, in memory, from the definition.

An ended task tells its children one by one and remembers in `told` how many it has told. A turn
writes a bounded number of rows; what is left is found again by `told`, by this scheduler or,
after a crash, by another one. Since a child that has not been told is still open, a run cannot
end while anything is left to tell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tidemill.domain.events import (
    Admitted,
    Due,
    Event,
    Granted,
    Held,
    ParentsEnded,
    StopRequested,
    Succeeded,
)
from tidemill.domain.fact_builders import FACT_OF_RUN_STATE, run_fact, task_fact
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import Moment, SessionId, TaskKey
from tidemill.domain.plan import Node, Plan
from tidemill.domain.run import Run, RunState
from tidemill.domain.run_transitions import AllEnded, RunReopened, StopAsked, Unfolded, advance_run
from tidemill.domain.task_run import ENDED, Attempt, Reason, TaskRun, TaskState
from tidemill.domain.transitions import Transition, advance

STOPPABLE = (TaskState.PENDING, TaskState.READY, TaskState.BACKOFF, TaskState.RUNNING)
"""What a run that is being stopped still has to stop."""

# Python 3.11 takes longer to find a member of an enumeration than to compare with it.
_PAUSED = RunState.PAUSED
_READY = TaskState.READY
_FAILED = TaskState.FAILED
_GOING_ON = frozenset({RunState.RUNNING, RunState.PAUSED})


class Journal:
    """What ledgers add rather than change; those of one turn share one. Each run's in order."""

    def __init__(self) -> None:
        self.new_tasks: list[TaskRun] = []
        self.results: list[tuple[TaskKey, bytes]] = []
        self.attempts: list[Attempt] = []
        self.facts: list[Fact] = []


class Ledger:
    """One run, the rows of it that a turn has locked, and what the turn changes in them."""

    def __init__(
        self,
        run: Run,
        plan: Plan,
        now: Moment,
        chance: Callable[[], float],
        rows_max: int,
        journal: Journal,
    ) -> None:
        self.run = run
        self.plan = plan
        self.now = now
        self.rows_left = rows_max
        self.journal = journal
        self._chance = chance
        self._unfolds = False  # writes new tasks
        self._readies = False  # has made a task READY
        self._stored_run = run
        self._tasks: dict[int, TaskRun] = {}
        self._changed: set[int] = set()
        self._telling: deque[int] = deque()
        self._more_to_stop = False
        self._more_to_tell = False

    # Rows in, rows out

    def supply(self, tasks: Iterable[TaskRun]) -> None:
        """Take in locked rows; one that is here already may have moved on and is kept."""
        for task in tasks:
            if task.position not in self._tasks:
                self._tasks[task.position] = task
                if task.told is not None:
                    self._telling.append(task.position)

    def take_up(self, tasks: Sequence[TaskRun], *, more: bool) -> None:
        """Take in rows with children left to tell; `more` when there are others like them."""
        self.supply(tasks)
        self._more_to_tell = more

    def wanted(self) -> list[int]:
        """Positions of the rows that the ledger needs to go on telling."""
        if self.run.stop is not None:
            return []
        missing: dict[int, None] = {}
        for position in self._next_to_tell():
            if len(missing) >= self.rows_left:
                break
            if position not in self._tasks:
                missing[position] = None
        return list(missing)

    def changed_tasks(self) -> list[TaskRun]:
        """Rows to write back, in the order of their keys."""
        if len(self._changed) > 1:
            return [self._tasks[position] for position in sorted(self._changed)]
        return [self._tasks[position] for position in self._changed]

    def changed_run(self) -> Run | None:
        """The run to write back, if it changed."""
        if self.run is self._stored_run or self.run == self._stored_run:
            return None
        return self.run

    def task(self, position: int) -> TaskRun | None:
        """A row as it stands now, if it was supplied."""
        return self._tasks.get(position)

    def ready_tasks(self) -> list[TaskRun]:
        """Rows that this turn made READY and that nothing holds back, in order of key.

        None of a run that is being stopped: they are cancelled soon, if not in this turn.
        """
        if not self._readies or self.is_stopping:
            return []
        return [task for task in self.changed_tasks() if task.state is _READY and task.hold is None]

    @property
    def is_paused(self) -> bool:
        """Whether nothing of the run may be granted."""
        return self.run.state is _PAUSED

    @property
    def is_stopping(self) -> bool:
        """Whether what is left of the run is being cancelled."""
        return self.run.stop is not None and self.run.state is RunState.RUNNING

    @property
    def must_stop_tasks(self) -> bool:
        """Whether this turn has begun to stop the run, and so has tasks to stop."""
        return self.is_stopping and self._stored_run.stop is None

    @property
    def has_to_tell(self) -> bool:
        """Whether an ending is known that children, or the roots, have not heard of."""
        return bool(self._telling) or self.run.told is not None

    @property
    def unfinished(self) -> bool:
        """Whether another turn must go on with this run at once."""
        # Rows that this turn writes cannot be told or stopped before the next one.
        writing = self.run.state is RunState.PENDING or self._unfolds
        telling = self.has_to_tell or self._more_to_tell
        return writing or telling or self._more_to_stop or self.run.swept is not None

    # What can happen

    def happen(self, position: int, event: Event) -> bool:
        """Let an event happen to a task; False when it comes too late to mean anything."""
        task = self._tasks.get(position)
        if task is None:
            return False
        move = self._move(task, event)
        if move is None:
            return False
        if isinstance(event, Succeeded) and event.result is not None:
            self.journal.results.append((task.key, event.result))
        self._record(task, move)
        return True

    def grant(
        self, position: int, session_id: SessionId, start_seconds: float | None = None
    ) -> TaskRun:
        """Give a READY task to a session, or a pool; return it as granted."""
        granted = self.happen(position, Granted(session_id, start_seconds))
        assert granted, "only a supplied READY row is granted"
        return self._tasks[position]

    def stop(self, reason: Reason) -> None:
        """Begin to cancel what is left of the run."""
        before = self.run
        self.run = advance_run(before, StopAsked(reason), self.now)
        if self.run.stop is not before.stop:
            self._tell_run(FactType.WORKFLOW_STOPPING)

    def stop_tasks(self, tasks: Sequence[TaskRun], *, more: bool) -> None:
        """Stop these tasks of a run that is being stopped; `more` when others are left."""
        assert self.run.stop is not None
        self.supply(tasks)
        for task in tasks:
            self.happen(task.position, StopRequested())
        self._more_to_stop = more

    def sweep(self, tasks: Sequence[TaskRun], *, more: bool) -> None:
        """Hold these READY tasks if the run is paused, admit them if not; `more` when others are
        left behind them.
        """
        self.supply(tasks)
        event = Held() if self.is_paused else Admitted()
        for task in tasks:
            self.happen(task.position, event)
        swept = tasks[-1].position + 1 if more else None
        self.run = msgspec.structs.replace(self.run, swept=swept)

    def reopen(self, due_at: Moment | None) -> None:
        """Let the run go on; the tasks to run again follow."""
        self.run = advance_run(self.run, RunReopened(due_at), self.now)
        self._tell_run(FactType.WORKFLOW_REOPENED)

    def unfold(self) -> None:
        """Write the next tasks of a run that was accepted without them."""
        assert self.run.state is RunState.PENDING
        first = self.run.next_position
        nodes = self.plan.nodes[first : first + self.rows_left]
        self.journal.new_tasks += [new_task(self.run, node) for node in nodes]
        self._unfolds = bool(nodes)
        self.rows_left -= len(nodes)
        self.run = msgspec.structs.replace(self.run, next_position=first + len(nodes))
        if self.run.next_position == len(self.plan.nodes):
            self.run = advance_run(self.run, Unfolded(), self.now)
            self._tell_run(FactType.WORKFLOW_STARTED)

    def tell(self) -> None:
        """Tell children of their parents' endings, as far as rows are here and the bound allows."""
        if self.run.stop is not None:
            self._forget_to_tell()
            return
        self._tell_roots()
        for _ in range(len(self._telling) + self.rows_left):
            if not self._telling or not self._tell_children(self._telling[0]):
                break
            self._telling.popleft()

    def settle(self) -> None:
        """End the run if none of its tasks is open."""
        if self.run.open == 0 and self.run.state in _GOING_ON:
            self.run = advance_run(self.run, AllEnded(), self.now)
            self._tell_run(FACT_OF_RUN_STATE[self.run.state])

    # How it follows

    def _move(self, task: TaskRun, event: Event) -> Transition | None:
        node = self.plan.nodes[task.node]
        if not self.is_paused:
            return advance(task, event, node, self.now, self._chance())
        if isinstance(event, Due) and event.state is TaskState.READY:
            event = Held()  # not held yet, and its wait does not count any more
        move = advance(task, event, node, self.now, self._chance())
        if move is None or move.task.state is not TaskState.READY:
            return move
        aside = advance(move.task, Held(), node, self.now, self._chance())
        return move if aside is None else Transition(aside.task, move.attempt)

    def _record(self, before: TaskRun, move: Transition) -> None:
        after = move.task
        if after.state in ENDED and before.state not in ENDED:
            after = self._count_ending(after)
        elif before.state in ENDED and after.state not in ENDED:
            self._count_reopening(before)
        self._tasks[after.position] = after
        self._changed.add(after.position)
        if move.attempt is not None:
            self.journal.attempts.append(move.attempt)
        if after.state is _READY:
            self._readies = True
        if after.state is not before.state:
            node = self.plan.nodes[after.node]
            self.journal.facts.append(task_fact(self.run, node, before, after, self.now))
        if after.state is _FAILED and self.plan.workflow.on_failure == "stop":
            self.stop(Reason.TASK_FAILED)

    def _count_ending(self, task: TaskRun) -> TaskRun:
        run = self.run
        self.run = msgspec.structs.replace(
            run,
            open=run.open - 1,
            ended=run.ended + 1,
            failed=run.failed + (task.state is _FAILED),
        )
        if task.told is not None:
            self._telling.append(task.position)
        return msgspec.structs.replace(task, ended_no=run.ended + 1)

    def _count_reopening(self, before: TaskRun) -> None:
        was_dead = before.state is TaskState.FAILED
        self.run = msgspec.structs.replace(
            self.run, open=self.run.open + 1, failed=self.run.failed - was_dead
        )
        if before.position in self._telling:
            self._telling.remove(before.position)

    def _tell_roots(self) -> None:
        told = self.run.told
        if told is None:
            return
        for position in self.plan.roots[told:]:
            if self.rows_left <= 0 or position not in self._tasks:
                break
            self.happen(position, ParentsEnded(()))
            self.rows_left -= 1
            told += 1
        done = told == len(self.plan.roots)
        self.run = msgspec.structs.replace(self.run, told=None if done else told)

    def _tell_children(self, position: int) -> bool:
        task = self._tasks[position]
        children = self.plan.nodes[task.node].children
        told = task.told
        assert told is not None
        for child in children[told:]:
            if self.rows_left <= 0 or child not in self._tasks or self.run.stop is not None:
                break
            # A child that is past waiting ran in spite of this parent, before a replay of it.
            if self._tasks[child].state is TaskState.PENDING:
                self.happen(child, ParentsEnded((task.state,)))
            self.rows_left -= 1
            told += 1
        done = told == len(children)
        self._tasks[position] = msgspec.structs.replace(task, told=None if done else told)
        self._changed.add(position)
        return done

    def _forget_to_tell(self) -> None:
        # Children of a stopped run are cancelled one by one; nobody has to tell them.
        for position in self._telling:
            self._tasks[position] = msgspec.structs.replace(self._tasks[position], told=None)
            self._changed.add(position)
        self._telling.clear()
        self.run = msgspec.structs.replace(self.run, told=None)

    def _next_to_tell(self) -> Iterator[int]:
        if self.run.told is not None:
            yield from self.plan.roots[self.run.told :]
        below: deque[Node] = deque()
        for position in self._telling:
            task = self._tasks[position]
            node = self.plan.nodes[task.node]
            yield from node.children[task.told :]
            if task.state is not TaskState.SUCCEEDED:
                below.extend(self.plan.nodes[child] for child in node.children[task.told :])
        # An ending without success runs down the graph: fetch its way ahead in one go.
        seen = {node.index for node in below}
        while below:
            for child in below.popleft().children:
                if child not in seen:
                    seen.add(child)
                    below.append(self.plan.nodes[child])
                    yield child

    def _tell_run(self, kind: FactType) -> None:
        self.journal.facts.append(run_fact(self.run, kind, self.now))


def new_task(run: Run, node: Node) -> TaskRun:
    """The row of a task that nothing has happened to yet."""
    return TaskRun(
        run_id=run.id,
        position=node.index,
        namespace=run.namespace,
        node=node.index,
        kind=node.kind,
        state=TaskState.PENDING,
        waiting=len(node.parents),
        route=node.route,
        priority=node.spec.priority,
    )
