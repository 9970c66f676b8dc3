"""What a running task can ask and say: its context, and the errors with a meaning of their own."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from tidemill.domain.errors import TidemillError
from tidemill.domain.identifiers import RunId, Token
from tidemill.sdk.secrets import Secrets, SecretSources


class FinalError(Exception):
    """Raise it from a task that no retry can mend."""


class RetryLater(Exception):
    """Raise it from a task that wants its next attempt only after this many seconds."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"try again in {seconds:g} s")
        self.seconds = seconds


class TaskCancelled(BaseException):
    """Raised by `raise_if_cancelled`; no `except Exception` swallows it by accident."""


class NoContext(TidemillError):
    """`context()` was called where no task runs."""


class Voice(Protocol):
    """Where the words of a running task go."""

    @property
    def cancelled(self) -> bool:
        """Whether the task should stop."""

    def heartbeat(self) -> None:
        """The task is alive."""

    def progress(self, fraction: float, message: str) -> None:
        """The task has come this far."""

    def write(self, text: str) -> None:
        """The task has printed or logged this."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The running attempt, as its own code sees it. Safe to use from any thread."""

    token: Token
    workflow: str
    task: str
    attempt: int  # from 1
    voice: Voice
    secrets: Secrets = msgspec.field(default_factory=lambda: Secrets(SecretSources()))

    @property
    def run_id(self) -> RunId:
        """The run that the task belongs to."""
        return self.token.run_id

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this task: hand it to services that drop duplicates."""
        return f"{self.token.run_id}:{self.token.position}"

    @property
    def attempt_key(self) -> str:
        """Different for every attempt, also for one whose worker was lost."""
        return f"{self.token.run_id}:{self.token.position}:{self.token.epoch}"

    @property
    def task_token(self) -> str | None:
        """Send it as `Authorization: Bearer …` to services that ask Tidemill who calls.

        It speaks for this attempt and while that runs only; it is masked like a secret. None where
        schedulers sign none.
        """
        return self.secrets.task_token()

    @property
    def logger(self) -> logging.Logger:
        """Its lines are kept with the attempt."""
        return _logger

    @property
    def cancelled(self) -> bool:
        """Whether the task should stop: its run was cancelled or its time is over.

        Functions in threads look here now and then; coroutines get a CancelledError as well.
        """
        return self.voice.cancelled

    def raise_if_cancelled(self) -> None:
        """End the task here if it should stop."""
        if self.voice.cancelled:
            raise TaskCancelled(f"{self.task} was asked to stop")

    def progress(self, fraction: float, message: str = "") -> None:
        """Show how far the task has come, from 0 to 1; counts as a heartbeat."""
        self.voice.progress(min(1.0, max(0.0, fraction)), message)

    def secret(self, name: str) -> str:
        """A secret by its name; it is masked in whatever the task prints or raises from now on.

        Of those in the store, the ones that inputs of the task name.
        """
        return self.secrets.find(name)

    def heartbeat(self) -> None:
        """Prove that the task is alive, where it has a heartbeat timeout."""
        self.voice.heartbeat()


_current: contextvars.ContextVar[Context | None] = contextvars.ContextVar(
    "tidemill_context", default=None
)


def context() -> Context:
    """The context of the task that runs this code."""
    current = _current.get()
    if current is None:
        raise NoContext(
            "context() works only while Tidemill runs the task; "
            "in a unit test, wrap the call in `with tidemill.sdk.context.fake_context():`"
        )
    return current


def current_context() -> Context | None:
    """The same for code that may also run outside a task."""
    return _current.get()


def enter_context(context: Context) -> None:
    """Make this the context of the running task or thread, for whoever executes tasks."""
    _current.set(context)


@dataclass(slots=True)
class FakeVoice:
    """Keeps what the code under test says; set `cancelled` to see it stop."""

    cancelled: bool = False
    heartbeats: int = 0
    reports: list[tuple[float, str]] = field(default_factory=list)
    text: str = ""

    def heartbeat(self) -> None:
        """Count it."""
        self.heartbeats += 1

    def progress(self, fraction: float, message: str) -> None:
        """Keep it."""
        self.reports.append((fraction, message))

    def write(self, text: str) -> None:
        """Keep it."""
        self.text += text


@contextmanager
def fake_context(
    *,
    task: str = "task",
    attempt: int = 1,
    secrets: Mapping[str, str] | None = None,
    task_token: str = "",
) -> Iterator[FakeVoice]:
    """Run task code in a plain unit test; what it says is in the value yielded."""
    voice = FakeVoice()
    token = Token(RunId("00000000-0000-7000-8000-000000000000"), 0, attempt)
    fake = Context(
        token=token,
        workflow="test",
        task=task,
        attempt=attempt,
        voice=voice,
        secrets=Secrets(SecretSources(handed=dict(secrets or {}), task_token=task_token)),
    )
    before = _current.set(fake)
    try:
        yield voice
    finally:
        _current.reset(before)


class ContextHandler(logging.Handler):
    """Hands log lines to the task that wrote them; lines from elsewhere go to `otherwise`."""

    def __init__(self, otherwise: logging.Handler | None = None) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._otherwise = otherwise

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record to the current task's voice."""
        current = _current.get()
        if current is not None:
            current.voice.write(self.format(record) + "\n")
        elif self._otherwise is not None:
            self._otherwise.handle(record)


def _make_logger() -> logging.Logger:
    logger = logging.getLogger("tidemill.task")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(ContextHandler())
    return logger


_logger = _make_logger()

__all__ = [
    "Context",
    "ContextHandler",
    "FakeVoice",
    "FinalError",
    "NoContext",
    "RetryLater",
    "TaskCancelled",
    "Voice",
    "context",
    "current_context",
    "enter_context",
    "fake_context",
]
