"""Messages to bytes and back. What comes off the wire is checked here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from tidemill.domain.errors import TidemillError
from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded, WorkerReport
from tidemill.domain.identifiers import RunId, SessionId, Token
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
    return _serialize(_wire_worker_message(message))


def encode_scheduler_message(message: SchedulerMessage) -> bytes:
    """What a scheduler sends."""
    return _serialize(_wire_scheduler_message(message))


def decode_worker_message(data: bytes) -> WorkerMessage:
    """What a worker has sent, or MalformedMessage."""
    parsed = _parse(data, wire.WorkerMessage())
    return _value_of(parsed, _WORKER_READERS)


def decode_scheduler_message(data: bytes) -> SchedulerMessage:
    """What a scheduler has sent, or MalformedMessage."""
    parsed = _parse(data, wire.SchedulerMessage())
    return _value_of(parsed, _SCHEDULER_READERS)


# From values to the wire.


def _wire_worker_message(message: WorkerMessage) -> wire.WorkerMessage:
    match message:
        case Outcomes(outcomes):
            body = wire.Outcomes(outcomes=map(_wire_outcome, outcomes))
            return wire.WorkerMessage(outcomes=body)
        case Ping():
            return wire.WorkerMessage(ping=wire.Ping())
        case Holdings(held=held, slots=slots):
            return wire.WorkerMessage(holdings=wire.Holdings(held=_wire_tokens(held), slots=slots))
        case Progress(reports):
            return wire.WorkerMessage(progress=wire.Progress(reports=map(_wire_progress, reports)))
        case Logs(chunks):
            return wire.WorkerMessage(logs=wire.Logs(chunks=map(_wire_log, chunks)))
        case Goodbye(released):
            return wire.WorkerMessage(goodbye=wire.Goodbye(released=_wire_tokens(released)))
        case Hello():
            return wire.WorkerMessage(hello=_wire_hello(message))


def _wire_scheduler_message(message: SchedulerMessage) -> wire.SchedulerMessage:
    match message:
        case Assignments(assignments):
            body = wire.Assignments(assignments=map(_wire_assignment, assignments))
            return wire.SchedulerMessage(assignments=body)
        case Acks(tokens, stale):
            acks = wire.Acks(tokens=_wire_tokens(tokens), stale=_wire_tokens(stale))
            return wire.SchedulerMessage(acks=acks)
        case Ping():
            return wire.SchedulerMessage(ping=wire.Ping())
        case Cancels(tokens):
            return wire.SchedulerMessage(cancels=wire.Cancels(tokens=_wire_tokens(tokens)))
        case Welcome():
            return wire.SchedulerMessage(welcome=_wire_welcome(message))
        case Refused(reason):
            return wire.SchedulerMessage(refused=wire.Refused(reason=reason))


def _wire_hello(hello: Hello) -> wire.Hello:
    return wire.Hello(
        protocol=hello.protocol,
        worker=hello.worker,
        namespace=hello.namespace,
        slots=hello.slots,
        queues=hello.queues,
        labels=hello.labels,
        executors=hello.executors,
        offers=hello.offers,
        session=hello.session,
        secret=hello.secret,
        held=_wire_tokens(hello.held),
        finished=map(_wire_outcome, hello.finished),
    )


def _wire_welcome(welcome: Welcome) -> wire.Welcome:
    return wire.Welcome(
        session=welcome.session,
        secret=welcome.secret,
        keep=_wire_tokens(welcome.keep),
        acknowledged=_wire_tokens(welcome.acknowledged),
    )


def _wire_assignment(assignment: Assignment) -> wire.Assignment:
    return wire.Assignment(
        token=_wire_token(assignment.token),
        attempt=assignment.attempt,
        workflow=assignment.workflow,
        task=assignment.task,
        executor=assignment.executor,
        params=assignment.params,
        inputs=assignment.inputs,
        run_input=assignment.run_input,
        results=assignment.results,
        attempt_seconds=assignment.attempt_seconds,
        heartbeat_seconds=assignment.heartbeat_seconds,
        secrets=assignment.secrets,
        secrets_trouble=assignment.secrets_trouble,
        task_token=assignment.task_token,
    )


def _wire_outcome(outcome: Outcome) -> wire.Outcome:
    token = _wire_token(outcome.token)
    match outcome.report:
        case Succeeded(_, result):
            return wire.Outcome(token=token, succeeded=wire.Succeeded(result=result))
        case Failed() as failed:
            return wire.Outcome(token=token, failed=_wire_failed(failed))
        case CancelConfirmed():
            return wire.Outcome(token=token, cancel_confirmed=wire.CancelConfirmed())
        case Released():
            return wire.Outcome(token=token, released=wire.Released())


def _wire_failed(failed: Failed) -> wire.Failed:
    error = failed.error
    return wire.Failed(
        error=wire.TaskError(type=error.type, message=error.message, traceback=error.traceback),
        final=failed.final,
        timeout=failed.timeout,
        retry_after_seconds=failed.retry_after_seconds,
    )


def _wire_progress(report: ProgressReport) -> wire.ProgressReport:
    return wire.ProgressReport(
        token=_wire_token(report.token), fraction=report.fraction, message=report.message
    )


def _wire_log(chunk: LogText) -> wire.LogText:
    return wire.LogText(token=_wire_token(chunk.token), text=chunk.text, dropped=chunk.dropped)


def _wire_token(token: Token) -> wire.Token:
    return wire.Token(run_id=token.run_id, position=token.position, epoch=token.epoch)


def _wire_tokens(tokens: Iterable[Token]) -> list[wire.Token]:
    return [_wire_token(token) for token in tokens]


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
        results=dict(assignment.results),
        attempt_seconds=_optional_seconds(assignment, "attempt_seconds"),
        heartbeat_seconds=_optional_seconds(assignment, "heartbeat_seconds"),
        secrets=dict(assignment.secrets),
        secrets_trouble=assignment.secrets_trouble,
        task_token=assignment.task_token,
    )


def _outcome(outcome: wire.Outcome) -> Outcome:
    token = _token(outcome.token)
    return Outcome(token, _report(outcome, token.epoch))


def _report(outcome: wire.Outcome, epoch: int) -> WorkerReport:
    match outcome.WhichOneof("report"):
        case "succeeded":
            done = outcome.succeeded
            return Succeeded(epoch, done.result if done.HasField("result") else None)
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
    if not token.run_id:
        raise MalformedMessage("a token without a run id")
    if len(token.run_id) > RUN_ID_CHARACTERS_MAX:
        raise MalformedMessage(f"a run id of more than {RUN_ID_CHARACTERS_MAX} characters")
    if max(token.position, token.epoch) > NUMBER_MAX:
        raise MalformedMessage(f"a token with a number above {NUMBER_MAX}")
    return Token(RunId(token.run_id), token.position, token.epoch)


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
    "assignments": lambda body: Assignments(tuple(map(_assignment, body.assignments))),
    "acks": lambda body: Acks(_tokens(body.tokens), _tokens(body.stale)),
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
