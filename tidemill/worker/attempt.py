"""One attempt while this process works on it: its timers, its stop, its report.

An attempt reports exactly once, normally when its code ends. One that was asked to stop, because of
a cancel or a timeout, gets a bounded time to do so; code that goes on after that is stuck: the
report is made without it, and its slot stays taken until the code really ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import Any, Protocol, TypeAlias

import msgspec

from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded, WorkerReport
from tidemill.domain.identifiers import Token
from tidemill.domain.masking import Masking
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import Assignment
from tidemill.sdk.context import Context
from tidemill.sdk.secrets import Secrets, SecretSources
from tidemill.worker.config import WorkerConfig
from tidemill.worker.failures import failure_of, timeout_failure
from tidemill.worker.output import Output

Work: TypeAlias = Coroutine[Any, Any, Succeeded | Failed]


class Stop(Enum):
    """Why an attempt is asked to stop."""

    CANCEL = auto()  # somebody wants it
    TIMEOUT = auto()  # the attempt took too long
    SILENCE = auto()  # no heartbeat came for too long
    RELEASE = auto()  # the worker leaves


class Watcher(Protocol):
    """Who is told what becomes of an attempt."""

    def reported(self, attempt: Attempt, report: WorkerReport) -> None:
        """The grant is over, with this report."""

    def stuck(self, attempt: Attempt) -> None:
        """The code goes on although it was asked to stop; `reported` follows."""

    def ended(self, attempt: Attempt) -> None:
        """The code has really ended."""


class Attempt:
    """Runs the work of one grant and is the voice of its context."""

    def __init__(
        self,
        assignment: Assignment,
        watcher: Watcher,
        output: Output,
        clock: Clock,
        config: WorkerConfig,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.assignment = assignment
        self.token: Token = assignment.token
        self.cancelled = False
        self.began_at = 0.0  # by the clock that only ever grows
        self.masking = Masking()  # the values of secrets that the task was given
        self._writing = threading.Lock()
        self._watcher = watcher
        self._output = output
        self._clock = clock
        self._config = config
        self._loop = loop
        self._stop: Stop | None = None
        self._reported = False
        self._task: asyncio.Task[Succeeded | Failed] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._last_sign = 0.0

    @property
    def context(self) -> Context:
        """What the user's code sees of this attempt."""
        return Context(
            token=self.token,
            workflow=self.assignment.workflow,
            task=self.assignment.task,
            attempt=self.assignment.attempt,
            voice=self,
            secrets=Secrets(self._secret_sources, self.masking.add),
        )

    @property
    def _secret_sources(self) -> SecretSources:
        given = self.assignment
        if not (given.secrets or given.secrets_trouble or given.task_token):
            return self._config.secrets
        return msgspec.structs.replace(
            self._config.secrets,
            handed=given.secrets,
            trouble=given.secrets_trouble or self._config.secrets.trouble,
            task_token=given.task_token,
        )

    def is_run_by(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether this task of the loop runs the code itself."""
        return task is not None and task is self._task

    def start(self, work: Work) -> None:
        """Begin, and start the timers that the task asks for."""
        self.began_at = self._last_sign = self._clock.monotonic()
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._work_ended)
        if self.assignment.attempt_seconds is not None:
            self._after(self.assignment.attempt_seconds, lambda: self.stop(Stop.TIMEOUT))
        if self.assignment.heartbeat_seconds is not None:
            self._after(self.assignment.heartbeat_seconds, self._look_for_sign)

    def stop(self, reason: Stop) -> None:
        """Ask the code to stop; the first reason is the one that is reported."""
        if self._stop is not None or self._task is None or self._task.done():
            return
        self._stop = reason
        self.cancelled = True
        self._task.cancel()
        late = reason in {Stop.TIMEOUT, Stop.SILENCE}
        patience = self._config.timeout_seconds if late else self._config.cancel_seconds
        self._after(patience, self._give_up)

    # What the user's code says, from any thread.

    def heartbeat(self) -> None:
        """Remember the sign of life."""
        self._last_sign = self._clock.monotonic()

    def progress(self, fraction: float, message: str) -> None:
        """Pass it on with the next batch."""
        self._last_sign = self._clock.monotonic()
        self._output.report(self.token, fraction, self.masking.mask(message))

    def write(self, text: str) -> None:
        """Pass it on with the next batch; nobody listens to a stuck attempt."""
        if not self._reported:
            with self._writing:  # what two threads write at once must not be put together wrongly
                self._output.write(self.token, self.masking.feed(text))

    # What follows from timers and from the end of the code.

    def _after(self, seconds: float, callback: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, callback))

    def _look_for_sign(self) -> None:
        limit = self.assignment.heartbeat_seconds
        assert limit is not None
        left = self._last_sign + limit - self._clock.monotonic()
        if left <= 0:
            self.stop(Stop.SILENCE)
        else:
            self._after(left, self._look_for_sign)

    def _give_up(self) -> None:
        if not self._reported:
            self._watcher.stuck(self)
            self._report(self._report_of_stop())

    def _work_ended(self, task: asyncio.Task[Succeeded | Failed]) -> None:
        for timer in self._timers:
            timer.cancel()
        report = self._report_of(task)  # also when stuck: reading the error marks it as seen
        if not self._reported:
            self._report(report)
        self._task = None  # whose context knows the attempt: only the collector could part them
        self._watcher.ended(self)

    def _report(self, report: WorkerReport) -> None:
        if self.masking:
            with self._writing:
                self._output.write(self.token, self.masking.flush())
        self._reported = True
        self._watcher.reported(self, report)

    def _report_of(self, task: asyncio.Task[Succeeded | Failed]) -> WorkerReport:
        if task.cancelled():
            if self._stop is not None:
                return self._report_of_stop()
            return failure_of(asyncio.CancelledError("the task cancelled itself"), self.token.epoch)
        error = task.exception()
        epoch, mask = self.token.epoch, self.masking.mask
        report = task.result() if error is None else failure_of(error, epoch, mask)
        # What was done is done, also by code that was asked to stop; but too late is too late.
        done = isinstance(report, Succeeded) and self._stop in {Stop.CANCEL, Stop.RELEASE}
        return report if self._stop is None or done else self._report_of_stop()

    def _report_of_stop(self) -> WorkerReport:
        epoch = self.token.epoch
        limits = self.assignment
        match self._stop:
            case Stop.TIMEOUT:
                text = f"the attempt took longer than its {limits.attempt_seconds:g} s"
                return timeout_failure("AttemptTimeout", text, epoch)
            case Stop.SILENCE:
                text = f"no heartbeat for {limits.heartbeat_seconds:g} s"
                return timeout_failure("HeartbeatTimeout", text, epoch)
            case Stop.RELEASE:
                return Released(epoch)
            case _:
                return CancelConfirmed(epoch)
