"""From values to the wire.

Messages are filled in place: building each part on its own, to be copied into the next one, takes
three times as long, and a batch of them is what a busy scheduler sends all the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from google.protobuf.message import Message

from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded
from tidemill.domain.identifiers import Token
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

AnyWire = TypeVar("AnyWire", bound=Message)
Slots: TypeAlias = RepeatedCompositeFieldContainer[AnyWire]


def wire_worker_message(message: WorkerMessage) -> wire.WorkerMessage:
    """What a worker sends."""
    parcel = wire.WorkerMessage()
    match message:
        case Outcomes(outcomes):
            _fill_outcomes(_said(parcel.outcomes).outcomes, outcomes)
        case Ping():
            _said(parcel.ping)
        case Holdings(held=held, slots=slots):
            parcel.holdings.slots = slots
            _fill_tokens(_said(parcel.holdings).held, held)
        case Progress(reports):
            _fill_progress(_said(parcel.progress).reports, reports)
        case Logs(chunks):
            _fill_logs(_said(parcel.logs).chunks, chunks)
        case Goodbye(released):
            _fill_tokens(_said(parcel.goodbye).released, released)
        case Hello():
            _fill_hello(_said(parcel.hello), message)
    return parcel


def wire_scheduler_message(message: SchedulerMessage) -> wire.SchedulerMessage:
    """What a scheduler sends."""
    parcel = wire.SchedulerMessage()
    match message:
        case Assignments(assignments, acks):
            _fill_assignments(_said(parcel.assignments).assignments, assignments)
            if acks is not None:
                _fill_acks(_said(parcel.assignments.acks), acks)
        case Acks():
            _fill_acks(_said(parcel.acks), message)
        case Ping():
            _said(parcel.ping)
        case Cancels(tokens):
            _fill_tokens(_said(parcel.cancels).tokens, tokens)
        case Welcome():
            _fill_welcome(_said(parcel.welcome), message)
        case Refused(reason):
            _said(parcel.refused).reason = reason
    return parcel


def _said(part: AnyWire) -> AnyWire:
    """The same part, which counts as present even if nothing is put into it."""
    part.SetInParent()
    return part


def _fill_hello(body: wire.Hello, hello: Hello) -> None:
    body.protocol = hello.protocol
    body.worker = hello.worker
    body.namespace = hello.namespace
    body.slots = hello.slots
    body.queues.extend(hello.queues)
    body.labels.update(hello.labels)
    body.executors.extend(hello.executors)
    body.offers.extend(hello.offers)
    body.joins_acks = hello.joins_acks
    if hello.session is not None:
        body.session = hello.session
    if hello.secret is not None:
        body.secret = hello.secret
    _fill_tokens(body.held, hello.held)
    _fill_outcomes(body.finished, hello.finished)


def _fill_welcome(body: wire.Welcome, welcome: Welcome) -> None:
    body.session = welcome.session
    body.secret = welcome.secret
    _fill_tokens(body.keep, welcome.keep)
    _fill_tokens(body.acknowledged, welcome.acknowledged)


def _fill_acks(body: wire.Acks, acks: Acks) -> None:
    _fill_tokens(body.tokens, acks.tokens)
    _fill_tokens(body.stale, acks.stale)


def _fill_assignments(slots: Slots[wire.Assignment], assignments: Iterable[Assignment]) -> None:
    for one in assignments:
        slot = slots.add(
            attempt=one.attempt,
            workflow=one.workflow,
            task=one.task,
            executor=one.executor,
            params=one.params,
            inputs=one.inputs,
            run_input=one.run_input,
            secrets_trouble=one.secrets_trouble,
            task_token=one.task_token,
        )
        token = slot.token
        token.run_id, token.position, token.epoch = one.token
        if one.results:
            slot.results.update(one.results)
        if one.secrets:
            slot.secrets.update(one.secrets)
        if one.attempt_seconds is not None:
            slot.attempt_seconds = one.attempt_seconds
        if one.heartbeat_seconds is not None:
            slot.heartbeat_seconds = one.heartbeat_seconds


def _fill_outcomes(slots: Slots[wire.Outcome], outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        slot = slots.add()
        token = slot.token
        token.run_id, token.position, token.epoch = outcome.token
        match outcome.report:
            case Succeeded() as done:
                succeeded = _said(slot.succeeded)
                if done.result is not None:
                    succeeded.result = done.result
            case Failed() as failed:
                _fill_failed(_said(slot.failed), failed)
            case CancelConfirmed():
                slot.cancel_confirmed.SetInParent()
            case Released():
                slot.released.SetInParent()


def _fill_failed(body: wire.Failed, failed: Failed) -> None:
    error = _said(body.error)
    error.type = failed.error.type
    error.message = failed.error.message
    error.traceback = failed.error.traceback
    body.final = failed.final
    body.timeout = failed.timeout
    if failed.retry_after_seconds is not None:
        body.retry_after_seconds = failed.retry_after_seconds


def _fill_progress(slots: Slots[wire.ProgressReport], reports: Iterable[ProgressReport]) -> None:
    for report in reports:
        slot = slots.add(fraction=report.fraction, message=report.message)
        slot.token.run_id, slot.token.position, slot.token.epoch = report.token


def _fill_logs(slots: Slots[wire.LogText], chunks: Iterable[LogText]) -> None:
    for chunk in chunks:
        slot = slots.add(text=chunk.text, dropped=chunk.dropped)
        slot.token.run_id, slot.token.position, slot.token.epoch = chunk.token


def _fill_tokens(slots: Slots[wire.Token], tokens: Iterable[Token]) -> None:
    for token in tokens:
        slot = slots.add()
        slot.run_id, slot.position, slot.epoch = token
