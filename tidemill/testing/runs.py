"""One run in a unit test, and everything that a test may want to know about it."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.authoring.in_process import (
    SLOTS,
    Ended,
    FunctionLibrary,
    Pace,
    carry_out,
    executors_for,
    loop_runs_here,
    put_away,
)
from tidemill.authoring.workflows import WorkflowFunction
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.facts import Fact
from tidemill.domain.identifiers import RunId, SessionId
from tidemill.domain.problems import did_you_mean
from tidemill.domain.task_run import TaskError
from tidemill.domain.workflow import Workflow
from tidemill.scheduler.config import SchedulerConfig
from tidemill.sdk.secrets import SecretSources, variable_of
from tidemill.sdk.typed_values import to_json
from tidemill.testing.clock import VirtualClock
from tidemill.testing.rigging import Failures, NoThreads, Rig, RiggedExecutor, TaskCall
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Workshop
from tidemill.worker.processes import Commands

AGES = 1e8
"""Seconds: what happens so seldom does not happen in a test."""

SCANS = 100
"""How many scans there are within the shortest limit that only scans notice."""


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """A run that has ended."""

    __test__ = False  # pytest takes classes of such names for tests

    state: str  # SUCCEEDED, FAILED or CANCELLED
    states: Mapping[str, str]  # of the tasks, by id
    attempts: Mapping[str, int]  # how often each task was run
    errors: Mapping[str, TaskError]  # of tasks that failed for good
    results: Mapping[str, Any]  # of tasks, as JSON
    facts: tuple[Fact, ...]  # all that happened, in order
    calls: tuple[TaskCall, ...]  # every attempt with its inputs, in order
    seconds: float  # virtual time from start to end
    ended: Ended
    reading: Callable[[Any], Any]

    @property
    def result(self) -> Any:
        """What the workflow returned; WorkflowFailed when it did not succeed."""
        return self.reading(self.ended.value())


def run(
    flow: WorkflowFunction[..., Any] | Workflow,
    input: Mapping[str, Any] | None = None,  # noqa: A002 - the word that runs have
    *,
    fail: Mapping[str, Failures] | None = None,
    stub: Mapping[str, Any] | None = None,
    clock: VirtualClock | None = None,
    secrets: Mapping[str, str] | None = None,
) -> TestRun:
    """Run a workflow to its end in virtual time, in this process, without files or sockets.

    `fail` makes attempts of tasks fail: {"load": 2}, {"load": ValueError("no")} or a list of
    errors, one for each attempt. `stub` puts a function or a value in the place of a task.
    Functions run one at a time. What waits for the real world should be stubbed.
    """
    rig = Rig(fail or {}, stub or {}, secrets or {})
    stage = _Stage(flow, rig, clock or VirtualClock())
    _check_ids(stage.definition, fail=fail or {}, stub=stub or {})
    if input is not None and not isinstance(input, Mapping):
        raise TypeError(f"input is a dict of arguments by name, not {input!r:.80}")
    value = {name: to_json(each) for name, each in (input or {}).items()}
    return _in_loop(stage, value)


class _Stage:
    """A definition, its functions, and the executors that the test has rigged."""

    def __init__(
        self, flow: WorkflowFunction[..., Any] | Workflow, rig: Rig, clock: VirtualClock
    ) -> None:
        self.rig = rig
        self.clock = clock
        self.reading: Callable[[Any], Any] = lambda value: value
        self._functions: Mapping[str, Callable[..., Any]] = {}
        if isinstance(flow, Workflow):
            self.definition = flow
        else:
            self.definition = flow.definition
            self.reading = flow.result_of
            self._functions = flow.functions

    async def run(self, value: Mapping[str, Any]) -> TestRun:
        workshop = Workshop(
            clock=self.clock,
            entropy=_Entropy(),
            library=FunctionLibrary(self._functions),
            threads=NoThreads(),
            commands=Commands(),
        )
        real = executors_for(self.definition, workshop)
        executors = {name: RiggedExecutor(each, self.rig) for name, each in real.items()}
        begun = self.clock.seconds
        pace = _pace(self.definition, workshop, self.rig.secrets)
        try:
            ended = await carry_out(self.definition, value, executors, pace)
        finally:
            await put_away(real, workshop)
        return self._told(ended, self.clock.seconds - begun)

    def _told(self, ended: Ended, seconds: float) -> TestRun:
        runs = Counter(call.task for call in self.rig.calls)
        return TestRun(
            state=ended.run.state.value,
            states={name: row.state.value for name, row in ended.tasks.items()},
            attempts={name: runs[name] for name in ended.tasks},
            errors={name: row.error for name, row in ended.tasks.items() if row.error is not None},
            results=ended.results,
            facts=ended.facts,
            calls=tuple(self.rig.calls),
            seconds=seconds,
            ended=ended,
            reading=self.reading,
        )


def _in_loop(stage: _Stage, value: Mapping[str, Any]) -> TestRun:
    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=stage.clock.loop) as runner:
                outcome.append(runner.run(stage.run(value)))
        except BaseException as error:  # noqa: BLE001  (it is raised again in the caller's thread)
            outcome.append(error)

    outcome: list[TestRun | BaseException] = []
    if not loop_runs_here():
        work()
    else:
        # Such as that of an async test: a second one needs a thread.
        thread = threading.Thread(target=work, name="tidemill-testing")
        thread.start()
        thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _pace(definition: Workflow, workshop: Workshop, secrets: Mapping[str, str]) -> Pace:
    scheduler = SchedulerConfig(
        session_ttl_seconds=10 * AGES,
        lost_stream_seconds=AGES,
        renew_seconds=AGES,
        ping_seconds=AGES,
        silence_seconds=3 * AGES,
        scan_seconds=min(_limits(definition), default=AGES * SCANS) / SCANS,
        look_seconds=AGES,
        sweep_seconds=AGES,
        reconcile_seconds=AGES,
        log_flush_seconds=AGES,
        timer_horizon_seconds=AGES,
    )
    worker = WorkerConfig(
        name="test",
        slots=SLOTS,
        ping_seconds=AGES,
        silence_seconds=3 * AGES,
        holdings_seconds=AGES,
        flush_seconds=AGES,
        secrets=SecretSources(
            environment={variable_of(name): text for name, text in secrets.items()}
        ),
    )
    return Pace(clock=workshop.clock, entropy=workshop.entropy, scheduler=scheduler, worker=worker)


def _limits(definition: Workflow) -> Iterator[float]:
    """The times that begin with the run itself, which only scans notice."""
    if definition.timeout_seconds is not None:
        yield definition.timeout_seconds
    for spec in definition.tasks:
        if spec.timeouts.queue_seconds is not None:
            yield spec.timeouts.queue_seconds


def _check_ids(definition: Workflow, **given: Mapping[str, Any]) -> None:
    known = [spec.id for spec in definition.tasks]
    problems = [
        Problem(
            path=f"{option}.{name}",
            message=f"there is no such task{did_you_mean(name, known) or f'; there are: {known}'}",
            code="UNKNOWN_TASK",
        )
        for option, names in given.items()
        for name in names
        if name not in known
    ]
    if problems:
        raise InvalidInput(problems)


class _Entropy:
    """No chance at all: backoffs are as long as they are on average."""

    def __init__(self) -> None:
        self._count = 0

    def fraction(self) -> float:
        return 0.5

    def run_id(self) -> RunId:
        self._count += 1
        return RunId(f"01980000-0000-7000-8000-{self._count:012x}")

    def session_id(self) -> SessionId:
        self._count += 1
        return SessionId(f"session-{self._count}")

    def secret(self) -> str:
        return "secret"


__all__ = ["TestRun", "run"]
