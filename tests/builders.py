"""Builders of values for tests: name only what matters."""

from __future__ import annotations

from itertools import count
from typing import Any

from tidemill.domain.identifiers import SECOND, Moment, RunId, SessionId, VersionId
from tidemill.domain.run import PAUSED_FORMAT, PLAIN_FORMAT, RUN_ENDED, Run, RunState
from tidemill.domain.task_run import ENDED, GRANTED, TaskRun, TaskState
from tidemill.ports.store import NewRun, Session, StartKey, Version

NOON: Moment = 1_800_000_000 * SECOND
_numbers = count(1)


def a_run_id() -> RunId:
    """A fresh id in the shape of a UUIDv7; later ones sort behind earlier ones."""
    return RunId(f"01980000-0000-7000-8000-{next(_numbers):012x}")


def a_session_id() -> SessionId:
    """A fresh name of a session."""
    return SessionId(f"session-{next(_numbers):06}")


def a_pool_id() -> SessionId:
    """A fresh name of a pool."""
    return SessionId(f"pool-{next(_numbers):06}")


def a_run(**fields: Any) -> Run:
    """A RUNNING run with one open task; one that ended has none."""
    state = fields.get("state", RunState.RUNNING)
    plain: dict[str, Any] = {
        "id": fields.get("id") or a_run_id(),
        "namespace": "default",
        "workflow": "orders",
        "version_id": VersionId("v1"),
        "state": state,
        "open": 0 if state in RUN_ENDED else 1,
        "next_position": 1,
        "created_at": NOON,
        "started_at": None if state is RunState.PENDING else NOON,
        "ended_at": NOON if state in RUN_ENDED else None,
        "format": PAUSED_FORMAT if state is RunState.PAUSED else PLAIN_FORMAT,
    }
    return Run(**(plain | fields))


def a_new_run(input: bytes = b"{}", **fields: Any) -> NewRun:  # noqa: A002
    """A run about to be stored."""
    return NewRun(run=a_run(**fields), input=input)


def a_task(**fields: Any) -> TaskRun:
    """A READY task; the fields that its state asks for are there."""
    state = fields.get("state", TaskState.READY)
    plain: dict[str, Any] = {
        "run_id": fields.get("run_id") or a_run_id(),
        "position": 0,
        "namespace": "default",
        "node": fields.get("position", 0),
        "state": state,
        "epoch": 1 if state in GRANTED else 0,
        "route": "default",
        "session_id": SessionId("session-0") if state in GRANTED else None,
        "started_at": NOON if state in GRANTED else None,
        "ended_at": NOON if state in ENDED else None,
    }
    return TaskRun(**(plain | fields))


def a_session(**fields: Any) -> Session:
    """A session that is open for ten seconds from NOON."""
    plain: dict[str, Any] = {
        "id": fields.get("id") or a_session_id(),
        "namespace": "default",
        "worker": "worker-1",
        "scheduler": "scheduler-1",
        "secret_hash": "hash",
        "slots": 4,
        "queues": ("default",),
        "labels": {},
        "opened_at": NOON,
        "expires_at": NOON + 10 * SECOND,
    }
    return Session(**(plain | fields))


def a_version(**fields: Any) -> Version:
    """A definition."""
    plain: dict[str, Any] = {
        "id": VersionId("v1"),
        "namespace": "default",
        "name": "orders",
        "spec": b"{}",
        "created_at": NOON,
    }
    return Version(**(plain | fields))


def a_start_key(**fields: Any) -> StartKey:
    """A key that holds for a day from NOON."""
    plain: dict[str, Any] = {
        "namespace": "default",
        "kind": "run",
        "key": "order-1",
        "body_hash": "hash",
        "run_id": fields.get("run_id") or a_run_id(),
        "expires_at": NOON + 86_400 * SECOND,
    }
    return StartKey(**(plain | fields))
