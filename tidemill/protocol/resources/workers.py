"""Workers, queues and the overview of a namespace on the wire."""

from __future__ import annotations

import msgspec

from tidemill.protocol.resources.values import Time


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker process with an open session, what it serves and what it offers to run."""

    id: str
    worker: str
    scheduler: str
    slots: int
    queues: tuple[str, ...]
    labels: dict[str, str]
    opened_at: Time
    running: int = 0
    offers: tuple[str, ...] = ()  # executors, and functions such as `python:flow:extract`


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """What waits and runs in a queue, and who serves it. Counts end at 10,000."""

    name: str
    ready: int
    held: int
    running: int
    workers: int
    slots: int
    oldest_ready_at: Time | None = None


class RateView(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a second, on average over the last minute, as this server has seen it."""

    started: float = 0.0
    completed: float = 0.0
    failed: float = 0.0
    retried: float = 0.0


class OverviewView(msgspec.Struct, frozen=True, kw_only=True):
    """How a namespace stands. Counts end at 10,000."""

    namespace: str
    at: Time
    open_runs: int
    ready: int
    held: int
    running: int
    backoff: int
    dead_letters: int
    slots: int
    queues: tuple[QueueView, ...]
    workers: tuple[WorkerView, ...]
    rates: RateView = RateView()


__all__ = ["OverviewView", "QueueView", "RateView", "WorkerView"]
