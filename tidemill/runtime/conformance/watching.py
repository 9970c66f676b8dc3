"""The door of a scheduler, with somebody beside it who writes down who said what."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar, cast

from tidemill.domain.identifiers import Token
from tidemill.ports.clock import Clock
from tidemill.protocol.codec import encode_scheduler_message
from tidemill.protocol.door import Door
from tidemill.protocol.generated import worker_pb2 as wire
from tidemill.protocol.messages import (
    Assignments,
    Hello,
    Outcome,
    Outcomes,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)

Message = TypeVar("Message")

UNKNOWN_FIELD = b"\xc2\x3e\x07unknown"
"""Field 1000, of text: no message of the protocol has it."""


class StreamRecord:
    """All that was said on one stream, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, WorkerMessage]] = []
        self.sent: list[SchedulerMessage] = []

    @property
    def hello(self) -> Hello | None:
        """The first message, if it is what it should be."""
        first = self.heard[0][1] if self.heard else None
        return first if isinstance(first, Hello) else None

    @property
    def welcome(self) -> Welcome | None:
        """The scheduler's answer."""
        return next((one for one in self.sent if isinstance(one, Welcome)), None)

    def of_kind(self, kind: type[Message]) -> list[Message]:
        """What the worker said of one kind."""
        return [message for _, message in self.heard if isinstance(message, kind)]

    @property
    def outcomes(self) -> list[Outcome]:
        """Every outcome, those of Hello too."""
        brought = self.hello.finished if self.hello is not None else ()
        return [*brought, *(one for many in self.of_kind(Outcomes) for one in many.outcomes)]

    @property
    def assigned(self) -> list[Token]:
        """Every grant that was sent."""
        batches = (one for one in self.sent if isinstance(one, Assignments))
        return [assignment.token for batch in batches for assignment in batch.assignments]


class WatchedDoor:
    """Passes everything on, and records it; can lose an outcome, and change a Hello."""

    def __init__(self, door: Door, clock: Clock) -> None:
        self.streams: list[StreamRecord] = []
        self.lost: list[Outcome] = []  # heard, and not passed on
        self.lose_next_outcomes = False
        self.rewrite: Callable[[Hello], Hello] = _as_it_is
        self._door = door
        self._clock = clock

    async def attach(
        self, incoming: AsyncIterator[WorkerMessage]
    ) -> AsyncIterator[SchedulerMessage]:
        """Serve one stream, as the door itself would."""
        record = StreamRecord()
        self.streams.append(record)
        answers = cast(
            AsyncGenerator[SchedulerMessage, None],
            self._door.attach(self._listen(record, incoming)),
        )
        async with aclosing(answers):
            async for message in answers:
                record.sent.append(message)
                yield message

    async def _listen(
        self, record: StreamRecord, incoming: AsyncIterator[WorkerMessage]
    ) -> AsyncIterator[WorkerMessage]:
        async for message in incoming:
            record.heard.append((self._clock.monotonic(), message))
            if isinstance(message, Outcomes) and self.lose_next_outcomes:
                self.lose_next_outcomes = False
                self.lost += message.outcomes
                return  # the end of the worker's side: the scheduler ends its own
            yield self.rewrite(message) if isinstance(message, Hello) else message


def _as_it_is(hello: Hello) -> Hello:
    return hello


def encode_with_unknown_fields(message: SchedulerMessage) -> bytes:
    """The message as a later release might send it: with fields that nobody knows yet."""
    data = wire.SchedulerMessage.FromString(encode_scheduler_message(message))
    kind = data.WhichOneof("message")
    assert kind is not None
    body = getattr(data, kind)
    for assignment in getattr(body, "assignments", ()):
        assignment.MergeFromString(UNKNOWN_FIELD)
        assignment.token.MergeFromString(UNKNOWN_FIELD)
    body.MergeFromString(UNKNOWN_FIELD)
    data.MergeFromString(UNKNOWN_FIELD)
    return data.SerializeToString()
