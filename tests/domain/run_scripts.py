"""Random runs: shapes, what each task does, and in which order it all happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from tests.domain.legal_moves import ERROR
from tests.domain.plans import a_plan, a_spec
from tests.domain.run_stage import Stage
from tidemill.domain.events import (
    Adopted,
    CancelConfirmed,
    Due,
    Event,
    Failed,
    Granted,
    Lost,
    Released,
    Succeeded,
)
from tidemill.domain.identifiers import SessionId
from tidemill.domain.ledger import Ledger
from tidemill.domain.plan import Plan
from tidemill.domain.run import RunState
from tidemill.domain.task_run import TaskRun, TaskState
from tidemill.domain.workflow import RetryPolicy, TriggerRule

STEPS_MAX = 20_000
SESSION = SessionId("session-0")
NOISE = ("lost", "released", "failed", "adopted")
BUSY = (TaskState.READY, TaskState.RUNNING, TaskState.BACKOFF, TaskState.CANCELLING)


@dataclass
class Script:
    """A plan, how each of its tasks would end, and the chance that orders events."""

    plan: Plan
    dooms: list[bool]  # whether a task fails for good once it runs
    random: Random
    rows_max: int
    noise: dict[int, list[str]] = field(default_factory=dict)  # what precedes the ending

    def ending_of(self, position: int) -> TaskState:
        """How a task ends if it runs."""
        return TaskState.FAILED if self.dooms[position] else TaskState.SUCCEEDED

    def stage(self, rows_max: int | None = None) -> Stage:
        """A stage on which nothing has happened yet."""
        return Stage(self.plan, rows_max or self.rows_max)

    def mend(self) -> None:
        """From now on every task succeeds."""
        self.dooms = [False] * len(self.plan.nodes)

    def next_event(self, task: TaskRun) -> Event:
        """What happens next to a task that waits for a slot, a timer or its worker."""
        match task.state:
            case TaskState.READY:
                return Granted(SESSION)
            case TaskState.BACKOFF:
                return Due(task.epoch, TaskState.BACKOFF)
            case TaskState.CANCELLING:
                stops: list[Event] = [CancelConfirmed(task.epoch), Lost(task.epoch, SESSION)]
                return self.random.choice([*stops, Succeeded(task.epoch)])
            case _:
                return self._report(task)

    def _report(self, task: TaskRun) -> Event:
        noise = self.noise.get(task.position)
        match noise.pop() if noise else None:
            case "lost":
                return Lost(task.epoch, SESSION)
            case "released":
                return Released(task.epoch)
            case "failed":
                return Failed(epoch=task.epoch, error=ERROR)
            case "adopted":
                return Adopted(task.epoch, SESSION)
            case _ if self.dooms[task.position]:
                return Failed(epoch=task.epoch, error=ERROR, final=True)
            case _:
                return Succeeded(task.epoch, b"1")


@st.composite
def scripts(draw: st.DrawFn, tasks_max: int = 9, on_failure: str = "continue") -> Script:
    """Random DAGs with random rules, endings, orders and bounds."""
    count = draw(st.integers(1, tasks_max))
    random = Random(draw(st.integers(0, 2**32)))
    edges = 2 ** (count * (count - 1) // 2) - 1
    mask = draw(st.integers(0, edges)) & draw(st.integers(0, edges) | st.just(edges))
    rules = draw(st.lists(st.sampled_from(TriggerRule), min_size=count, max_size=count))
    dooms = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    plan = _plan(mask, rules, random, on_failure)
    noise = {place: random.choices(NOISE, k=random.choice([0, 0, 2])) for place in range(count)}
    return Script(plan, dooms, random, draw(st.integers(1, 50) | st.integers(1, 3)), noise)


def large_script(seed: int, tasks: int) -> Script:
    """A DAG of so many tasks, most of which run."""
    random = Random(seed)
    rules = random.choices(list(TriggerRule), weights=[6, 3, 3, 1, 1, 1], k=tasks)
    mask = 0
    for _ in range(2 * tasks):
        mask |= 1 << random.randrange(tasks * (tasks - 1) // 2)
    dooms = [random.random() < 0.15 for _ in range(tasks)]
    return Script(_plan(mask, rules, random, "continue"), dooms, random, random.randint(1, 50))


def play(
    script: Script, stage: Stage, done: Callable[[Stage, int], bool] = lambda stage, _: stage.ended
) -> Stage:
    """Let the run go on in small turns until it has ended, or until `done`."""
    random = script.random
    for step in range(STEPS_MAX):
        if stage.ended or done(stage, step):
            return stage
        busy = [place for place in stage.in_state(*BUSY) if not stage.is_held(place)]
        chosen = random.sample(busy, k=min(len(busy), random.randint(1, 4)))
        if random.random() < 0.1:
            stage.happen(*_guesses(stage, chosen), crash=True)
            continue
        events = [(place, script.next_event(stage.tasks[place])) for place in chosen]
        stage.now += 10**9  # every backoff is over
        take_up = not chosen or random.random() < 0.5
        ledger = stage.happen(*events, take_up=take_up)
        assert not take_up or _goes_on(stage, ledger), "nothing is left to do in an open run"
    raise AssertionError("the run does not end")


def _goes_on(stage: Stage, ledger: Ledger) -> bool:
    """Whether a run has ended or is paused, or its next turn is sure to come."""
    if stage.run.state is RunState.PAUSED:
        return True
    return bool(stage.ended or ledger.unfinished or stage.in_state(*BUSY) or stage.untold)


def _guesses(stage: Stage, chosen: list[int]) -> list[tuple[int, Event]]:
    """Events of a turn that is never written: reports of success for whatever runs."""
    running = [place for place in chosen if stage.tasks[place].state is TaskState.RUNNING]
    return [(place, Succeeded(stage.tasks[place].epoch)) for place in running]


def _plan(mask: int, rules: list[TriggerRule], random: Random, on_failure: str) -> Plan:
    """Tasks in a random order, each with those parents above it whose bit is set."""
    pairs = [(above, below) for below in range(len(rules)) for above in range(below)]
    chosen = {pair for bit, pair in enumerate(pairs) if mask >> bit & 1}
    specs = [
        a_spec(
            f"t{place}",
            *(f"t{above}" for above in range(place) if (above, place) in chosen),
            trigger=rule,
            retry=RetryPolicy(max_retries=3),
        )
        for place, rule in enumerate(rules)
    ]
    random.shuffle(specs)
    return a_plan(*specs, on_failure=on_failure)
