"""What is known about a run that is being watched: tasks by state, kept up to date by facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from tidemill.cli.views.text import listing
from tidemill.domain.facts import Fact, FactType
from tidemill.domain.identifiers import Moment
from tidemill.domain.plan import Plan
from tidemill.domain.run import RunState
from tidemill.domain.task_run import ENDED, TaskKind, TaskRun, TaskState
from tidemill.protocol.cloud_events import moment_of
from tidemill.protocol.resources import RunView, TaskView

# What a person looks for first.
INTEREST = (
    TaskState.FAILED,
    TaskState.RUNNING,
    TaskState.CANCELLING,
    TaskState.BACKOFF,
    TaskState.READY,
)


@dataclass(slots=True)
class TaskLine:
    """One task, as far as a view shows it."""

    position: int
    name: str
    depth: int
    state: TaskState = TaskState.PENDING
    attempt: int = 0  # how many have begun
    started_at: Moment | None = None
    ended_at: Moment | None = None
    note: str = ""
    progress: float | None = None
    joins: str = ""  # its parents, when the tree cannot show them all
    lack: str = ""  # why it stays ready: no worker offers it, or something holds it


@dataclass(frozen=True, slots=True)
class Vertex:
    """A task as a place in a graph; parents are places too. Hidden ones show when they fail."""

    index: int
    name: str
    parents: tuple[int, ...] = ()
    hidden: bool = False


@dataclass(slots=True)
class RunModel:
    """A run and its tasks in the order in which they are shown."""

    workflow: str
    lines: list[TaskLine]  # by position
    order: list[int]  # positions, each task below its first parent
    rank: list[int]  # by position: place in that order
    state: RunState = RunState.PENDING
    by_state: dict[TaskState, dict[int, None]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> RunModel:
        """The model of a run that has not begun, from its definition."""
        hidden = {node.index for node in plan.nodes if node.kind is not TaskKind.TASK}
        return cls.over(
            plan.workflow.name,
            [Vertex(n.index, n.id, tuple(n.parents), n.index in hidden) for n in plan.nodes],
        )

    @classmethod
    def of_views(cls, run: RunView, tasks: Sequence[TaskView]) -> RunModel:
        """The model of a run as a server tells it."""
        places = {task.id: task.position for task in tasks}
        names = {task.position: task for task in tasks}
        vertices = []
        known = max(run.progress.total, *(p + 1 for p in names), 0)
        for index in range(known + 1):  # there may be one more, which makes the output
            task = names.get(index)
            if task is None:
                vertices.append(Vertex(index, "output", hidden=True))
                continue
            parents = tuple(places[name] for name in task.depends_on if name in places)
            vertices.append(Vertex(index, task.title or task.id, parents))
        model = cls.over(run.title or run.workflow, vertices)
        model.state = run.state
        model.load_views(tasks)
        return model

    @classmethod
    def over(cls, workflow: str, vertices: Sequence[Vertex]) -> RunModel:
        """The model over any graph."""
        order, depths = _tree(vertices)
        lines = [
            TaskLine(one.index, one.name, depths[one.index], joins=_joins(vertices, one))
            for one in vertices
        ]
        shown = [place for place in order if not vertices[place].hidden]
        by_state: dict[TaskState, dict[int, None]] = {state: {} for state in TaskState}
        by_state[TaskState.PENDING] = dict.fromkeys(shown)
        rank = [0] * len(vertices)
        for place, position in enumerate(order):
            rank[position] = place
        return cls(workflow, lines, shown, rank, by_state=by_state)

    @property
    def ended(self) -> int:
        """How many tasks have ended, however."""
        return sum(len(self.by_state[state]) for state in ENDED)

    def counts(self) -> list[tuple[TaskState, int]]:
        """How many tasks are in each state, without the empty ones."""
        return [(state, len(tasks)) for state, tasks in self.by_state.items() if tasks]

    def load(self, tasks: Iterable[TaskRun]) -> None:
        """Take over what the store says."""
        for task in tasks:
            line = self.lines[task.node]
            self._move(line, task.state)
            line.attempt = task.epoch
            line.started_at, line.ended_at = task.started_at, task.ended_at
            line.note = f"{task.error.type}: {task.error.message}" if task.error else ""

    def load_views(self, tasks: Iterable[TaskView]) -> None:
        """Take over what a server says."""
        for task in tasks:
            line = self.lines[task.position]
            self._move(line, task.state)
            line.attempt = task.epoch
            line.started_at = moment_of(task.started_at) if task.started_at else None
            line.ended_at = moment_of(task.ended_at) if task.ended_at else None
            line.note = f"{task.error.type}: {task.error.message}" if task.error else ""
            line.progress = task.progress.fraction if task.progress else None
            if task.progress is not None:
                line.note = task.progress.message
            ready = task.state is TaskState.READY
            line.lack = task.waiting_for[0].message if ready and task.waiting_for else ""

    def apply(self, fact: Fact) -> TaskLine | None:
        """Let one fact change the model; return the task concerned when a view shows it."""
        if fact.position is None:
            self.state = RunState(fact.state)
            return None
        line = self.lines[fact.position]
        self._move(line, TaskState(fact.state))
        line.attempt = fact.epoch
        if fact.type is FactType.TASK_STARTED:
            line.started_at, line.note = fact.at, ""
        line.progress, line.lack = None, ""
        line.ended_at = fact.at if line.state in ENDED else None
        line.note = fact.error or line.note
        return line if line.position in self.by_state[line.state] else None

    def visible(self, lines_max: int) -> Sequence[int]:
        """Positions to show, in order: all when they fit, else the most interesting ones."""
        if len(self.order) <= lines_max:
            return self.order
        failed = self.by_state[TaskState.FAILED]
        states = (*INTEREST[1:], TaskState.PENDING, *(ENDED - {TaskState.FAILED}))
        others = chain.from_iterable(self.by_state[state] for state in states)
        # However many have failed, half of the lines are left for what still moves.
        chosen = list(islice(failed, lines_max // 2))
        chosen += islice(others, lines_max - len(chosen))
        chosen += islice(failed, lines_max // 2, lines_max // 2 + lines_max - len(chosen))
        return sorted(chosen, key=self.rank.__getitem__)

    def _move(self, line: TaskLine, state: TaskState) -> None:
        shown = line.position in self.by_state[line.state]
        if not shown and state is TaskState.FAILED:
            # The output is worth a line only when it could not be evaluated.
            self.order.append(line.position)
            shown = True
        if shown:
            self.by_state[line.state].pop(line.position, None)
            self.by_state[state][line.position] = None
        line.state = state


def _joins(vertices: Sequence[Vertex], one: Vertex) -> str:
    return listing([vertices[place].name for place in one.parents]) if one.parents[1:] else ""


def _tree(vertices: Sequence[Vertex]) -> tuple[list[int], list[int]]:
    """Each task below its first parent, depth first; without recursion, chains are long."""
    below: list[list[int]] = [[] for _ in vertices]
    for one in vertices:
        if one.parents:
            below[one.parents[0]].append(one.index)
    order: list[int] = []
    depths = [0] * len(vertices)
    roots = [one.index for one in vertices if not one.parents]
    pending = [(root, 0) for root in reversed(roots)]
    while pending:
        place, depth = pending.pop()
        order.append(place)
        depths[place] = depth
        pending.extend((child, depth + 1) for child in reversed(below[place]))
    return order, depths
