"""The invariants that are checked after every commit, each a named function.

Names are those of the list in docs/simulator.md. A checker looks at what the commit changed, at
the facts that it added, and at what workers did, and yields what does not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tests.simulation import oracle
from tests.simulation.fold import ENDINGS, RUN_ENDINGS, FoldedTask, Step, check_move
from tests.simulation.look import Look, TaskRow
from tests.simulation.violation import Violation
from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.identifiers import SECOND, RunId, TaskKey, Token
from tidemill.domain.pools import is_pool
from tidemill.domain.workflow import RetryPolicy

FACTS_MAX = 5_000
SLOTS = 4
"""Slots of every simulated worker."""

UNFOLDING = frozenset({"PENDING", "PAUSED"})
GRANTED = frozenset({"RUNNING", "CANCELLING"})


def check_single_outcome(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I1, I8: a task ends once, and stays ended unless somebody replays it."""
    replayed = {key.run_id for key in look.executions.replays_asked}
    for step in steps:
        yield from check_move(step)
        reopens = step.before in ENDINGS and step.fact.state not in ENDINGS
        if step.task is not None and reopens and step.fact.run_id not in replayed:
            yield Violation("I8", f"{_name(step)} is {step.fact.state} and nobody replayed it")


def check_fence(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I3: the epoch rises by one with each grant, and outcomes are those of the epoch."""
    for step in steps:
        if step.task is None:
            continue
        rise = 1 if step.fact.state == "RUNNING" else 0
        if step.fact.epoch != step.task.epoch + rise:
            text = f"{_name(step)} is {step.fact.state} with epoch {step.fact.epoch}"
            yield Violation("I3", f"{text} after {step.task.epoch}")
        yield from _check_reported(look, step)
    for before, after in look.changed():
        if before is not None and after.epoch < before.epoch:
            yield Violation("I3", f"{after.token}: the epoch fell from {before.epoch}")


def _check_reported(look: Look, step: Step) -> Iterator[Violation]:
    fact = step.fact
    assert fact.position is not None
    token = Token(fact.run_id, fact.position, fact.epoch)
    report = look.executions.reports.get(token)
    if fact.state == "SUCCEEDED" and not isinstance(report, Succeeded):
        yield Violation("I3", f"{token} is SUCCEEDED, its worker said {report}")
    by_scheduler = (fact.error or "").startswith("InputTooLarge")
    by_report = fact.reason in {"failed", "exhausted", "final_error"} and not by_scheduler
    if fact.state in {"BACKOFF", "FAILED"} and by_report and not isinstance(report, Failed):
        yield Violation("I3", f"{token} is {fact.state}, its worker said {report}")


def check_leases(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I4: a grant ends by its own worker's word or with its session, and stays with its process."""
    for step in steps:
        if step.task is None or step.before not in GRANTED or step.fact.state in GRANTED:
            continue
        key = TaskKey(step.fact.run_id, step.fact.position or 0)
        token = Token(key.run_id, key.position, step.task.epoch)
        before = look.tasks_before.get(key)
        session = before.session_id if before is not None and before.token == token else None
        lost = step.fact.losses > step.task.losses
        timeout = step.fact.reason == "timeout"
        alive = look.is_open(session)
        if lost and alive:
            yield Violation("I4", f"{token} counts as lost, its session {session} is alive")
        elif not timeout and alive and look.executions.is_live(token):
            yield Violation("I4", f"{token} is {step.fact.state} while its worker is at it")
    for before, after in look.changed():
        yield from _check_adoption(look, before, after)


def _check_adoption(look: Look, before: TaskRow | None, after: TaskRow) -> Iterator[Violation]:
    if before is None or before.session_id is None or after.session_id is None:
        return
    if before.epoch != after.epoch or before.session_id == after.session_id:
        return
    if is_pool(before.session_id) and not look.executions.is_live(after.token):
        return  # bound, by whoever took it up first
    old, new = look.sessions.get(before.session_id), look.sessions.get(after.session_id)
    if old is not None and new is not None and old.worker != new.worker:
        yield Violation("I4", f"{after.token} went from {old.worker} to {new.worker} by adoption")


def check_dependencies(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I5: a task is decided when its parents have ended, as its trigger rule says."""
    # States of parents as they were at each step: the fold is ahead by the steps that follow.
    states = {_key(step): step.before for step in reversed(steps) if step.task is not None}
    for step in steps:
        if step.task is None:
            continue
        if step.before == "PENDING" and step.fact.state in {"READY", "SKIPPED", "UPSTREAM_FAILED"}:
            yield from _check_verdict(look, step, states)
        states[_key(step)] = step.fact.state


def _check_verdict(look: Look, step: Step, states: dict[TaskKey, str]) -> Iterator[Violation]:
    key = _key(step)
    workflow = look.workflows[step.fact.workflow]
    above = oracle.parents(workflow, key.position)
    if above is None:
        return
    keys = [TaskKey(key.run_id, parent) for parent in above]
    endings = [states.get(parent) or look.fold.state(parent) for parent in keys]
    verdict = oracle.verdict(workflow.tasks[key.position], endings)
    if verdict != step.fact.state:
        rule = workflow.tasks[key.position].trigger
        yield Violation("I5", f"{_name(step)} ({rule}) is {step.fact.state} after {endings}")


def check_outbox(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I6, I12, H1: whatever changed is told, and the tables are what the facts fold to."""
    told = {_key(step) for step in steps if step.task is not None}
    for before, after in look.changed():
        key = TaskKey(after.run_id, after.position)
        was = before.state if before is not None else "PENDING"
        if was != after.state and key not in told:
            yield Violation("I6", f"{after.token} went from {was} to {after.state}, untold")
    for key, row in look.tasks.items():
        yield from _check_folded(look, key, row)
    for run_id, run in look.runs.items():
        if look.fold.runs.get(run_id) != (run.state, run.generation):
            told_run = look.fold.runs.get(run_id)
            yield Violation("H1", f"run {run_id} is {run.state} {run.generation}, not {told_run}")


def _check_folded(look: Look, key: TaskKey, row: TaskRow) -> Iterator[Violation]:
    folded = look.fold.tasks.get(key) or FoldedTask()
    if (row.state, row.epoch) != folded[:2]:
        yield Violation("H1", f"{key} is {row.state} epoch {row.epoch}, facts say {folded}")
    if (row.failures, row.losses) != folded[2:]:
        spent = f"{row.failures} failures and {row.losses} losses"
        yield Violation("I12", f"{key} has {spent} in the table, facts say {folded}")


def check_budgets(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I12: each failure and each loss is counted once, apart, against its own limit."""
    for step in steps:
        if step.task is None:
            continue
        spent = (step.fact.failures - step.task.failures, step.fact.losses - step.task.losses)
        if spent not in _spending(step):
            text = f"{_name(step)} {step.before} -> {step.fact.state} ({step.fact.reason})"
            yield Violation("I12", f"{text} spent {spent}")
        yield from _check_limits(look, step)


def _spending(step: Step) -> set[tuple[int, int]]:
    failure, loss, nothing = (1, 0), (0, 1), (0, 0)
    assert step.task is not None
    match step.before, step.fact.state:
        case "RUNNING", "BACKOFF":
            return {failure}
        case "RUNNING", "FAILED":
            return {loss} if step.fact.reason == "lost" else {failure}
        case "RUNNING", "READY":
            return {loss, nothing}
        case "FAILED", "READY":
            return {(-step.task.failures, -step.task.losses)}
        case _:
            return {nothing}


def _check_limits(look: Look, step: Step) -> Iterator[Violation]:
    fact = step.fact
    spec = look.spec(_key(step))
    if spec is None:
        return
    policy = spec.retry
    if fact.state == "BACKOFF" and fact.failures > policy.max_retries:
        yield Violation("I12", f"{_name(step)} is retried after {fact.failures} failures")
    if (
        fact.state == "FAILED"
        and fact.reason == "exhausted"
        and fact.failures <= policy.max_retries
    ):
        yield Violation("I12", f"{_name(step)} is given up after {fact.failures} failures")
    if fact.losses > policy.max_losses + (fact.state == "FAILED"):
        yield Violation("I12", f"{_name(step)} is {fact.state} after {fact.losses} losses")
    yield from _check_delay(look, step, policy)


def _check_delay(look: Look, step: Step, policy: RetryPolicy) -> Iterator[Violation]:
    fact = step.fact
    before, after = look.tasks_before.get(_key(step)), look.tasks.get(_key(step))
    if fact.state == "BACKOFF" and after is not None and after.state == "BACKOFF":
        low, high = oracle.delay_range(policy, fact.failures)
        delay = ((after.due_at or 0) - fact.at) / SECOND
        if not low - 0.001 <= delay <= high + 0.001:
            yield Violation("I12", f"{_name(step)} waits {delay:.3f} s, not {low:g} to {high:g}")
    waited = before is not None and before.state == step.before == "BACKOFF"
    if waited and fact.state == "READY" and before and fact.at < (before.due_at or 0):
        yield Violation("I12", f"{_name(step)} is retried before its time")


def check_conservation(look: Look, _steps: Sequence[Step]) -> Iterator[Violation]:
    """I13: nothing vanishes, counters count what is there, and a run ends after its tasks."""
    open_tasks: Counter[RunId] = Counter()
    dead_tasks: Counter[RunId] = Counter()
    all_tasks: Counter[RunId] = Counter()
    for key, row in look.tasks.items():
        all_tasks[key.run_id] += 1
        open_tasks[key.run_id] += row.state not in ENDINGS
        dead_tasks[key.run_id] += row.state == "FAILED"
    for run_id, run in look.runs.items():
        workflow = look.workflows[run.workflow]
        total = len(workflow.tasks) + (workflow.output is not None)
        unwritten = total - run.next_position
        if all_tasks[run_id] != run.next_position or (unwritten and run.state not in UNFOLDING):
            yield Violation("I13", f"run {run_id} has {all_tasks[run_id]} of {total} tasks")
        if (run.open, run.failed) != (open_tasks[run_id] + unwritten, dead_tasks[run_id]):
            counted = f"{open_tasks[run_id]} open and {dead_tasks[run_id]} dead tasks"
            yield Violation("I13", f"run {run_id} counts {run.open}, {run.failed}: {counted}")
        if run.state in RUN_ENDINGS and open_tasks[run_id]:
            yield Violation("I13", f"run {run_id} is {run.state} with open tasks")
        if run.quarantine is not None:
            yield Violation("I13", f"run {run_id} is in quarantine: {run.quarantine}")
        if run.state == "SUCCEEDED" and dead_tasks[run_id]:
            yield Violation("I13", f"run {run_id} is SUCCEEDED with dead letters")
    if not (
        look.tasks.keys() >= look.tasks_before.keys()
        and look.runs.keys() >= look.runs_before.keys()
    ):
        yield Violation("I13", "a run or a task has vanished")


def check_bounds(look: Look, _steps: Sequence[Step]) -> Iterator[Violation]:
    """I14: no commit tells more facts than its bound allows, no worker runs more than its slots."""
    if any(size > FACTS_MAX for size in look.batch_sizes):
        yield Violation("I14", f"one commit told {max(look.batch_sizes)} facts")
    for worker, bodies in look.executions.bodies.items():
        if bodies > SLOTS:
            yield Violation("I14", f"{worker} runs {bodies} bodies in {SLOTS} slots")


def check_pauses(look: Look, steps: Sequence[Step]) -> Iterator[Violation]:
    """I16: nothing of a paused run is granted, and a hold for a pause does not outlast it."""
    for step in steps:
        run = look.runs_before.get(step.fact.run_id)
        granted = step.task is not None and step.fact.state == "RUNNING"
        if granted and run is not None and run.state == "PAUSED":
            yield Violation("I16", f"{_name(step)} is granted while its run is paused")
    for row in look.tasks.values():
        if row.state != "READY":
            continue
        run = look.runs[row.run_id]
        if (
            run.swept is None
            and run.stop is None
            and (row.hold == "paused") != (run.state == "PAUSED")
        ):
            yield Violation("I16", f"{row.token} is held {row.hold} in a run that is {run.state}")


Checker = Callable[[Look, Sequence[Step]], Iterator[Violation]]
AFTER_COMMIT: tuple[Checker, ...] = (
    check_single_outcome,
    check_fence,
    check_leases,
    check_dependencies,
    check_outbox,
    check_budgets,
    check_conservation,
    check_bounds,
    check_pauses,
)


def _key(step: Step) -> TaskKey:
    return TaskKey(step.fact.run_id, step.fact.position or 0)


def _name(step: Step) -> str:
    return f"{step.fact.run_id}/{step.fact.task}"
