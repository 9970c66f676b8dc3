"""Where a worker's stream meets the scheduler, whatever carries it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from tidemill.protocol.messages import SchedulerMessage, WorkerMessage


class Door(Protocol):
    """The scheduler's side of worker streams."""

    def attach(self, incoming: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Serve one stream until either side ends it.

        `incoming` ends when the worker's side of the stream is over, for whatever reason; closing
        the returned iterator ends the stream from this side. Forbidden in place of the first
        message, for a worker that may not come, is passed on.
        """
