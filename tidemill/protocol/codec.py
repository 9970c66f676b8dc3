"""Messages to bytes and back. What comes off the wire is checked here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from tidemill.domain.errors import TidemillError
from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded, WorkerReport
from tidemill.domain.identifiers import RunId, SessionId, Token, new_tuple
from tidemill.domain.task_run import TaskError
from tidemill.protocol.generated import worker_pb2 as wire
from tidemill.protocol.messages import (
    Acks,
    Assignment,
    Assignments,
    Cancels,
    Goodbye,
    Hello,
    Holdings,
    Logs,
    LogText,
    Outcome,
    Outcomes,
    Ping,
    Progress,
    ProgressReport,
    Refused,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)
from tidemill.protocol.writing import wire_scheduler_message, wire_worker_message

ATTACH = "/tidemill.worker.v1.WorkerGateway/Attach"
"""The one method of the protocol, as gRPC names it."""

MESSAGE_BYTES_MAX = 8 * 1024 * 1024

AnyWire = TypeVar("AnyWire", bound=Message)


NUMBER_MAX = 2**31 - 1
DROPPED_MAX = 2**40
"""Of dropped bytes in one chunk: sums of them must fit into a column."""
RUN_ID_CHARACTERS_MAX = 64


class MalformedMessage(TidemillError):
    """Bytes that are no message of the protocol, or a message that breaks its rules."""


def encode_worker_message(message: WorkerMessage) -> bytes:
    """What a worker sends."""
    return _serialize(wire_worker_message(message))


def encode_scheduler_message(message: SchedulerMessage) -> bytes:
    """What a scheduler sends."""
    return _serialize(wire_scheduler_message(message))


def decode_worker_message(data: bytes) -> WorkerMessage:
    """What a worker has sent, or MalformedMessage."""
    parsed = _parse(data, wire.WorkerMessage())
    return _value_of(parsed, _WORKER_READERS)


def decode_scheduler_message(data: bytes) -> SchedulerMessage:
    """What a scheduler has sent, or MalformedMessage."""
    parsed = _parse(data, wire.SchedulerMessage())
    return _value_of(parsed, _SCHEDULER_READERS)


def _serialize(message: Message) -> bytes:
    data: bytes = message.SerializeToString()
    if len(data) > MESSAGE_BYTES_MAX:
        raise MalformedMessage(f"a message of {len(data)} bytes, {MESSAGE_BYTES_MAX} is the limit")
    return data


# From the wire to values.


def _hello(hello: wire.Hello) -> Hello:
    return Hello(
        protocol=hello.protocol,
        worker=hello.worker,
        namespace=hello.namespace,
        slots=hello.slots,
        queues=tuple(hello.queues),
        labels=dict(hello.labels),
        executors=tuple(hello.executors),
        offers=tuple(hello.offers),
        joins_acks=hello.joins_acks,
        session=SessionId(hello.session) if hello.HasField("session") else None,
        secret=hello.secret if hello.HasField("secret") else None,
        held=_tokens(hello.held),
        finished=tuple(map(_outcome, hello.finished)),
    )


def _welcome(welcome: wire.Welcome) -> Welcome:
    return Welcome(
        session=SessionId(welcome.session),
        secret=welcome.secret,
        keep=_tokens(welcome.keep),
        acknowledged=_tokens(welcome.acknowledged),
    )


def _assignments(body: wire.Assignments) -> Assignments:
    acks = _acks(body.acks) if body.HasField("acks") else None
    return Assignments(tuple(map(_assignment, body.assignments)), acks)


def _assignment(assignment: wire.Assignment) -> Assignment:
    return Assignment(
        token=_token(assignment.token),
        attempt=assignment.attempt,
        workflow=assignment.workflow,
        task=assignment.task,
        executor=assignment.executor,
        params=assignment.params,
        inputs=assignment.inputs,
        run_input=assignment.run_input,
        results=dict(results) if (results := assignment.results) else {},
        attempt_seconds=_optional_seconds(assignment, "attempt_seconds"),
        heartbeat_seconds=_optional_seconds(assignment, "heartbeat_seconds"),
        secrets=dict(secrets) if (secrets := assignment.secrets) else {},
        secrets_trouble=assignment.secrets_trouble,
        task_token=assignment.task_token,
    )


def _acks(acks: wire.Acks) -> Acks:
    return Acks(_tokens(acks.tokens), _tokens(acks.stale))


def _outcome(outcome: wire.Outcome) -> Outcome:
    token = _token(outcome.token)
    return Outcome(token, _report(outcome, token.epoch))


def _report(outcome: wire.Outcome, epoch: int) -> WorkerReport:
    if outcome.HasField("succeeded"):  # nearly all
        done = outcome.succeeded
        return Succeeded(epoch, done.result if done.HasField("result") else None)
    match outcome.WhichOneof("report"):
        case "failed":
            return _failed(outcome.failed, epoch)
        case "cancel_confirmed":
            return CancelConfirmed(epoch)
        case "released":
            return Released(epoch)
        case _:
            raise MalformedMessage("an outcome without a report")


def _failed(failed: wire.Failed, epoch: int) -> Failed:
    error = failed.error
    return Failed(
        epoch=epoch,
        error=TaskError(type=error.type, message=error.message, traceback=error.traceback),
        final=failed.final,
        timeout=failed.timeout,
        retry_after_seconds=_optional_seconds(failed, "retry_after_seconds"),
    )


def _progress(report: wire.ProgressReport) -> ProgressReport:
    if not 0 <= report.fraction <= 1:
        raise MalformedMessage(f"progress of {report.fraction}; it goes from 0 to 1")
    return ProgressReport(_token(report.token), report.fraction, report.message)


def _log(chunk: wire.LogText) -> LogText:
    return LogText(_token(chunk.token), chunk.text, min(chunk.dropped, DROPPED_MAX))


def _token(token: wire.Token) -> Token:
    run_id, position, epoch = token.run_id, token.position, token.epoch
    if not run_id:
        raise MalformedMessage("a token without a run id")
    if len(run_id) > RUN_ID_CHARACTERS_MAX:
        raise MalformedMessage(f"a run id of more than {RUN_ID_CHARACTERS_MAX} characters")
    if position > NUMBER_MAX or epoch > NUMBER_MAX:
        raise MalformedMessage(f"a token with a number above {NUMBER_MAX}")
    return new_tuple(Token, (RunId(run_id), position, epoch))


def _tokens(tokens: Iterable[wire.Token]) -> tuple[Token, ...]:
    return tuple(map(_token, tokens))


def _optional_seconds(message: Any, field: str) -> float | None:
    if not message.HasField(field):
        return None
    seconds: float = getattr(message, field)
    if not math.isfinite(seconds) or seconds < 0:
        raise MalformedMessage(f"{field} of {seconds}; it must be a number of seconds")
    return seconds


_WORKER_READERS: dict[str, Callable[[Any], WorkerMessage]] = {
    "hello": _hello,
    "outcomes": lambda body: Outcomes(tuple(map(_outcome, body.outcomes))),
    "holdings": lambda body: Holdings(held=_tokens(body.held), slots=body.slots),
    "progress": lambda body: Progress(tuple(map(_progress, body.reports))),
    "logs": lambda body: Logs(tuple(map(_log, body.chunks))),
    "ping": lambda _: Ping(),
    "goodbye": lambda body: Goodbye(_tokens(body.released)),
}
_SCHEDULER_READERS: dict[str, Callable[[Any], SchedulerMessage]] = {
    "welcome": _welcome,
    "refused": lambda body: Refused(body.reason),
    "assignments": _assignments,
    "acks": _acks,
    "cancels": lambda body: Cancels(_tokens(body.tokens)),
    "ping": lambda _: Ping(),
}

Value = TypeVar("Value")


def _value_of(parsed: Any, readers: dict[str, Callable[[Any], Value]]) -> Value:
    kind = parsed.WhichOneof("message")
    if kind is None:
        raise MalformedMessage("a message without content, or of a kind this release does not know")
    return readers[kind](getattr(parsed, kind))


def _parse(data: bytes, message: AnyWire) -> AnyWire:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise MalformedMessage(f"not a message of the protocol: {error}") from error
    return message
