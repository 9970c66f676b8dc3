"""How a worker reaches a scheduler, whatever carries the messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from tidemill.domain.errors import TidemillError, Unavailable
from tidemill.protocol.door import Door
from tidemill.protocol.messages import SchedulerMessage, WorkerMessage


class LinkLost(Unavailable):
    """The stream broke or could not be opened: try again, perhaps elsewhere."""


class WorkerRefused(TidemillError):
    """The scheduler does not want this worker; trying again will not help."""


class Link(Protocol):
    """A way to one scheduler; each call of `open` is a new stream."""

    def open(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Send what `outgoing` yields and yield what comes back, until either side ends it.

        The end of the iterator or LinkLost means that the stream is over. `outgoing` is pulled
        from only when the previous message has been taken, so that what gathers meanwhile goes
        out as one batch.
        """


class DoorLink:
    """A link to a scheduler in the same process, for tests and the simulator."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def open(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Attach to the door directly."""
        return self._door.attach(outgoing)
