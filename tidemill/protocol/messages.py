"""What workers and schedulers say to each other; proto/worker.proto is the same on the wire.

A worker opens a stream with Hello and is answered with Welcome or Refused. From then on the
scheduler sends Assignments, Acks and Cancels; the worker sends Outcomes, which it repeats after a
reconnect until they are acknowledged. Both sides send Ping when they have nothing else to say.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tidemill.domain.events import WorkerReport
from tidemill.domain.identifiers import SessionId, Token

PROTOCOL_VERSION = 1


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How a grant ended, as the worker saw it. The report's epoch is the token's."""

    token: Token
    report: WorkerReport


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of a stream. `session` and `secret` reconnect an earlier session."""

    protocol: int = PROTOCOL_VERSION
    worker: str
    namespace: str = "default"
    slots: int
    queues: tuple[str, ...] = ("default",)
    labels: dict[str, str] = {}
    executors: tuple[str, ...] = ()  # whatever their params say
    offers: tuple[str, ...] = ()  # single functions of further ones, `python:flow:extract`
    session: SessionId | None = None
    secret: str | None = None
    held: tuple[Token, ...] = ()
    finished: tuple[Outcome, ...] = ()
    joins_acks: bool = False  # understands acknowledgements that come along with assignments


class Outcomes(msgspec.Struct, frozen=True):
    """Grants that ended."""

    outcomes: tuple[Outcome, ...]


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """Every few seconds: all that the worker runs or has not been acknowledged, and how many
    slots it can still use at all (fewer than in Hello when threads are stuck, 0 to drain)."""

    held: tuple[Token, ...]
    slots: int


class ProgressReport(msgspec.Struct, frozen=True, gc=False):
    """How far an attempt has come, from 0 to 1, in the user's words. Not kept."""

    token: Token
    fraction: float
    message: str = ""


class Progress(msgspec.Struct, frozen=True):
    """News of running attempts."""

    reports: tuple[ProgressReport, ...]


class LogText(msgspec.Struct, frozen=True, gc=False):
    """Some output of one attempt."""

    token: Token
    text: str
    dropped: int = 0  # bytes written between what was sent before and this


class Logs(msgspec.Struct, frozen=True):
    """Output of running attempts, in the order in which it was written."""

    chunks: tuple[LogText, ...]


class Ping(msgspec.Struct, frozen=True):
    """I am here."""


class Goodbye(msgspec.Struct, frozen=True):
    """The worker leaves. What it still holds it hands back unspent."""

    released: tuple[Token, ...] = ()


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The session is open. Of what was held, `keep` goes on; anything else must be stopped."""

    session: SessionId
    secret: str
    keep: tuple[Token, ...] = ()
    acknowledged: tuple[Token, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """No session, and why; trying again will not help."""

    reason: str


class Assignment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One task to run. Everything user-made travels as JSON bytes that no scheduler reads."""

    token: Token
    attempt: int
    workflow: str
    task: str
    executor: str
    params: bytes  # JSON object
    inputs: bytes  # JSON object of name -> source, as in the definition
    run_input: bytes  # JSON
    results: dict[str, bytes] = {}  # of the parents referred to, by task id; null when absent
    attempt_seconds: float | None = None
    heartbeat_seconds: float | None = None
    secrets: dict[str, str] = {}  # of those that inputs name: the ones in the store
    secrets_trouble: str = ""  # why others of them are not here
    task_token: str = ""  # with which the task shows other services who calls

    def __repr__(self) -> str:
        return f"Assignment({self.task!r}, {self.token!r})"  # never its values


class Acks(msgspec.Struct, frozen=True):
    """Outcomes that are committed, or stale for good: forget them."""

    tokens: tuple[Token, ...]
    stale: tuple[Token, ...] = ()


class Assignments(msgspec.Struct, frozen=True):
    """Tasks to run, at most as many as the session has free slots.

    A worker whose Hello says that it joins acks gets what the same turn acknowledges along with it.
    """

    assignments: tuple[Assignment, ...]
    acks: Acks | None = None


class Cancels(msgspec.Struct, frozen=True):
    """Grants to stop and to confirm; a token not held is ignored."""

    tokens: tuple[Token, ...]


WorkerMessage: TypeAlias = Hello | Outcomes | Holdings | Progress | Logs | Ping | Goodbye
SchedulerMessage: TypeAlias = Welcome | Refused | Assignments | Acks | Cancels | Ping
