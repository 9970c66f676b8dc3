"""What must hold in the tables after any order of any two operations. Names as in the simulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import asyncpg

from tests.interleaving.operations import relay
from tests.interleaving.stage import MILL, PAIR, Stage
from tests.simulation.fold import ENDINGS, RUN_ENDINGS, Fold, FoldedTask, check_move
from tests.simulation.violation import Violation
from tidemill.domain.facts import Fact, decode_facts
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.workflow import Workflow

Row = asyncpg.Record
RELAY_STEPS_MAX = 5
REPORTED = frozenset({"x", "y", "p", "q"})
"""Tasks whose workers report success, each with its first epoch."""

TASKS = "SELECT * FROM task ORDER BY run_id, position"
RUNS = "SELECT * FROM run ORDER BY id"
SESSIONS = "SELECT * FROM session"
OUTBOX = "SELECT number, position, facts FROM outbox ORDER BY position"
KEYS = "SELECT namespace, key, run_id FROM start_key"
RESULTS = "SELECT run_id, position FROM task_result"
STAMPED = "SELECT position FROM outbox_cursor WHERE name = '$stamped'"


class Look:
    """The tables at the end, after a relay has carried away what was left."""

    def __init__(self, tables: Sequence[Sequence[Row]], stage: Stage) -> None:
        self.tasks, self.runs, self.sessions, self.outbox, self.keys, self.results = tables
        self.stage = stage
        self.published = stage.bus.events

    def named(self, task: Row) -> str:
        """The name of a task in its definition."""
        return str(self.workflow(task["run_id"]).tasks[task["node"]].id)

    def workflow(self, run_id: RunId) -> Workflow:
        """The definition of a run."""
        return MILL if str(run_id) == self.stage.mill else PAIR


def ending(look: Look) -> tuple[object, ...]:
    """What is left of an order, without its moments: alike for orders that are alike."""
    tasks = [(look.named(row), row["state"], row["epoch"], row["session_id"]) for row in look.tasks]
    runs = [(row["workflow"], row["state"], row["generation"]) for row in look.runs]
    facts = [
        (fact.type, fact.task, fact.epoch)
        for row in look.outbox
        for fact in decode_facts(row["facts"])
    ]
    sessions = sorted(row["worker"] + str(row["closed_at"] is None) for row in look.sessions)
    return (tuple(tasks), tuple(runs), tuple(facts), tuple(sessions))


async def look(stage: Stage) -> Look:
    """Let a relay finish, and read everything."""
    await stage.observer.execute("DELETE FROM leader")  # whoever led is gone
    for _ in range(RELAY_STEPS_MAX):
        await relay(stage, "last")
    fetch = stage.observer.fetch
    return Look(
        [await fetch(query) for query in (TASKS, RUNS, SESSIONS, OUTBOX, KEYS, RESULTS)], stage
    )


def violations(look: Look) -> Iterator[Violation]:
    """Everything that does not fit."""
    yield from check_facts(look)
    yield from check_outcomes(look)
    yield from check_counters(look)
    yield from check_grants(look)
    yield from check_holds(look)
    yield from check_keys(look)
    yield from check_outbox(look)


def check_facts(look: Look) -> Iterator[Violation]:
    """I1, I3, I6, I8, H1: facts tell legal moves, and the tables are what they fold to."""
    fold = Fold()
    for row in look.outbox:
        for fact in decode_facts(row["facts"]):
            step = fold.apply(fact)
            yield from check_move(step)
            if step.task is not None:
                yield from _check_epoch(fact, step.task)
    for task in look.tasks:
        key = TaskKey(RunId(str(task["run_id"])), task["position"])
        told = fold.tasks.get(key) or FoldedTask()
        stored = FoldedTask(task["state"], task["epoch"], task["failures"], task["losses"])
        if stored != told:
            yield Violation("H1", f"{look.named(task)} is {stored}, facts say {told}")
    for run in look.runs:
        folded = fold.runs.get(RunId(str(run["id"])))
        if folded != (run["state"], run["generation"]):
            yield Violation("H1", f"run {run['workflow']} is {run['state']}, facts say {folded}")


def _check_epoch(fact: Fact, before: FoldedTask) -> Iterator[Violation]:
    rise = 1 if fact.state == "RUNNING" else 0
    if fact.epoch != before.epoch + rise:
        text = f"{fact.task} is {fact.state} with epoch {fact.epoch} after {before.epoch}"
        yield Violation("I3", text)


def check_outcomes(look: Look) -> Iterator[Violation]:
    """I1, I3: what succeeded was reported under that epoch, and its result is stored once."""
    results = {(row["run_id"], row["position"]) for row in look.results}
    for task in look.tasks:
        succeeded = task["state"] == "SUCCEEDED"
        name = look.named(task)
        if succeeded and (name not in REPORTED or task["epoch"] != 1):
            yield Violation("I3", f"{name} succeeded in epoch {task['epoch']}: nobody said so")
        if succeeded != ((task["run_id"], task["position"]) in results):
            yield Violation("I1", f"{name} is {task['state']}, its result is not like it")


def check_counters(look: Look) -> Iterator[Violation]:
    """I5, I13: counters count what is there, and a run ends with its last task."""
    tasks: dict[object, list[Row]] = defaultdict(list)
    for task in look.tasks:
        tasks[task["run_id"]].append(task)
    for run in look.runs:
        rows, name = tasks[run["id"]], run["workflow"]
        states = Counter(row["state"] for row in rows)
        left = sum(many for state, many in states.items() if state not in ENDINGS)
        if len(rows) != len(look.workflow(run["id"]).tasks):
            yield Violation("I13", f"run {name} has {len(rows)} tasks")
        if (run["open"], run["failed"]) != (left, states["FAILED"]):
            yield Violation("I13", f"run {name} counts {run['open']} open, there are {left}")
        if (run["state"] in RUN_ENDINGS) != (left == 0):
            yield Violation("I13", f"run {name} is {run['state']} with {left} open tasks")
        if run["quarantine"] is not None:
            yield Violation("I13", f"run {name} is in quarantine: {run['quarantine']}")
        if run["stop"] is None:  # what is being stopped need not count any more
            yield from _check_waiting(look, rows)


def _check_waiting(look: Look, rows: Sequence[Row]) -> Iterator[Violation]:
    states = {look.named(row): row["state"] for row in rows}
    told = {look.named(row): row["told"] is None for row in rows}
    for row in rows:
        parents = look.workflow(row["run_id"]).tasks[row["node"]].depends_on
        counted = sum(states[one] in ENDINGS and told[one] for one in parents)
        if row["state"] not in ENDINGS and row["waiting"] != len(parents) - counted:
            yield Violation("I5", f"{look.named(row)} waits for {row['waiting']} parents")
        if row["state"] == "READY" and row["waiting"]:
            yield Violation("I5", f"{look.named(row)} is READY before its parents have ended")


def check_grants(look: Look) -> Iterator[Violation]:
    """I4: what is granted is held by one session that is open."""
    closed = {row["id"]: row["closed_at"] is not None for row in look.sessions}
    alive = [row["id"] for row in look.sessions if row["worker"] == "left"]
    alive = [session for session in alive if not closed[session]]
    if len(alive) > 1:
        yield Violation("I4", f"one process has the sessions {alive}")
    for task in look.tasks:
        session = task["session_id"]
        if session is not None and closed.get(session, True):
            yield Violation("I4", f"{look.named(task)} is {task['state']} with a closed session")


def check_holds(look: Look) -> Iterator[Violation]:
    """I16: once turns have seen to it, READY tasks are held exactly while their run is paused."""
    runs = {run["id"]: run for run in look.runs}
    for task in look.tasks:
        run = runs[task["run_id"]]
        held = task["hold"] == "paused"
        settled = run["swept"] is None and run["stop"] is None
        if task["hold"] not in {None, "paused"}:
            yield Violation("I10", f"{look.named(task)} is held: {task['hold']}")
        if settled and task["state"] == "READY" and held != (run["state"] == "PAUSED"):
            yield Violation("I16", f"{look.named(task)} is held {held}, its run {run['state']}")


def check_keys(look: Look) -> Iterator[Violation]:
    """I13: one key has one run, and that run is there."""
    there = {run["id"] for run in look.runs}
    for row in look.keys:
        if row["run_id"] not in there:
            yield Violation("I13", f"key {row['key']} points at no run")
    unkeyed = there - {row["run_id"] for row in look.keys}
    if {str(run_id) for run_id in unkeyed} != {look.stage.pair}:
        yield Violation("I13", f"{len(unkeyed)} runs without a key")


def check_outbox(look: Look) -> Iterator[Violation]:
    """I6: positions are dense, and every fact was published, none before one that it follows."""
    positions = [row["position"] for row in look.outbox]
    if positions != list(range(1, len(positions) + 1)):
        yield Violation("I6", f"positions are {positions}")
    told = [
        f"{row['number']}.{index}"
        for row in look.outbox
        for index in range(len(decode_facts(row["facts"])))
    ]
    published = list(dict.fromkeys(event.id for event in look.published))
    if set(published) != set(told):
        yield Violation("I6", f"{len(told)} facts were told, {len(published)} published")
    fold = Fold()
    first = {event.id: event.fact for event in reversed(look.published)}
    for event_id in published:
        yield from check_move(fold.apply(first[event_id]))
