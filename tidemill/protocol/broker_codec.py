"""Between what a worker is granted and reports, and the messages that carry it over a broker."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded, WorkerReport
from tidemill.domain.identifiers import RunId, Token
from tidemill.domain.task_run import TaskError
from tidemill.protocol import broker_messages as wire
from tidemill.protocol.messages import Assignment

NULL = b"null"
Outcome = wire.Completed | wire.Failed | wire.Cancelled | wire.Released


def command_of(assignment: Assignment, namespace: str, alone: bool) -> wire.Command:
    """An assignment for whoever of a pool takes it up."""
    return wire.Command(
        namespace=namespace,
        run_id=assignment.token.run_id,
        position=assignment.token.position,
        epoch=assignment.token.epoch,
        attempt=assignment.attempt,
        workflow=assignment.workflow,
        task=assignment.task,
        executor=assignment.executor,
        params=Raw(assignment.params),
        inputs=Raw(assignment.inputs),
        run_input=Raw(assignment.run_input),
        results={task: Raw(data) for task, data in assignment.results.items()},
        attempt_seconds=assignment.attempt_seconds,
        heartbeat_seconds=assignment.heartbeat_seconds,
        alone=alone,
    )


def assignment_of(command: wire.Command) -> Assignment:
    """The other way round."""
    return Assignment(
        token=Token(RunId(command.run_id), command.position, command.epoch),
        attempt=command.attempt,
        workflow=command.workflow,
        task=command.task,
        executor=command.executor,
        params=bytes(command.params),
        inputs=bytes(command.inputs),
        run_input=bytes(command.run_input),
        results={task: bytes(data) for task, data in command.results.items()},
        attempt_seconds=command.attempt_seconds,
        heartbeat_seconds=command.heartbeat_seconds,
    )


def outcome_of(token: Token, report: WorkerReport, session: str, namespace: str) -> Outcome:
    """How a grant ended, as the worker that held it says."""
    about = grant_of(token, session, namespace)
    match report:
        case Succeeded(_, result):
            return wire.Completed(**about, result=Raw(NULL if result is None else result))
        case Failed():
            error = wire.ErrorData(
                type=report.error.type,
                message=report.error.message,
                traceback=report.error.traceback,
            )
            return wire.Failed(
                **about,
                error=error,
                final=report.final,
                timeout=report.timeout,
                retry_after_seconds=report.retry_after_seconds,
            )
        case CancelConfirmed():
            return wire.Cancelled(**about)
        case Released():
            return wire.Released(**about)


def grant_of(token: Token, session: str, namespace: str) -> dict[str, Any]:
    """The fields that every word about a grant has."""
    return {
        "session": session,
        "namespace": namespace,
        "run_id": token.run_id,
        "position": token.position,
        "epoch": token.epoch,
    }


def report_of(outcome: Outcome) -> WorkerReport:
    """What a worker says about the end of a grant."""
    match outcome:
        case wire.Completed():
            result = bytes(outcome.result)
            return Succeeded(outcome.epoch, None if result == NULL else result)
        case wire.Failed():
            error = outcome.error
            return Failed(
                epoch=outcome.epoch,
                error=TaskError(type=error.type, message=error.message, traceback=error.traceback),
                final=outcome.final,
                timeout=outcome.timeout,
                retry_after_seconds=outcome.retry_after_seconds,
            )
        case wire.Cancelled():
            return CancelConfirmed(outcome.epoch)
        case wire.Released():
            return Released(outcome.epoch)
