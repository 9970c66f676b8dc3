"""/v1/events: everything that moves, as server-sent events, resumable in any api process.

Each message is one CloudEvent, with `<position>.<index>` as its id. A client that was away sends
the last id it has seen, and nothing in between is lost while the outbox keeps it, a day at least;
what it has missed beyond that is told by a message `gap`, and the stream goes on with the oldest
event kept. An id in an empty message only says how far the stream has come.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import msgspec

from tidemill.api.following import Follower, Gap, TooSlow
from tidemill.api.looking import find_run_id
from tidemill.api.recent_rows import Choice, Place, Told
from tidemill.api.routing import EVENT_STREAM, Call, Stream, endpoint
from tidemill.api.welcome import CHECK_SECONDS, refusal_of
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.permissions import Permission
from tidemill.domain.workflow import Name
from tidemill.protocol.resources import EventsQuery, GapView
from tidemill.protocol.resources.events import GAP_EVENT, EventId, EventMessage

PING_SECONDS = 15.0
RETRY_MILLISECONDS = 1_000

_LAST_EVENT_ID = "Last-Event-ID"
_HEADERS = {_LAST_EVENT_ID: EventId}
_PLACE = re.compile(r"\d{1,18}(\.\d{1,9})?")


@endpoint(
    "GET",
    "/v1/events",
    permission=Permission.EVENTS_READ,
    summary="Follow everything that moves",
    tag="events",
    media_type=EVENT_STREAM,
    headers=_HEADERS,
    errors=("UNAVAILABLE",),
    returns=EventMessage,
)
async def follow_events(call: Call, query: EventsQuery) -> Stream:
    """Events of all runs of the namespace, from now on or behind an id."""
    return await _following(call, query, Choice(namespace=call.namespace))


@endpoint(
    "GET",
    "/v1/runs/{run_id}/events",
    permission=Permission.EVENTS_READ,
    summary="Follow a run",
    tag="events",
    media_type=EVENT_STREAM,
    headers=_HEADERS,
    errors=("NOT_FOUND", "UNAVAILABLE"),
    returns=EventMessage,
)
async def follow_run(call: Call, run_id: str, query: EventsQuery) -> Stream:
    """Events of one run. `after=0` begins with the oldest that is kept."""
    found = await find_run_id(call.services, call.namespace, run_id)
    return await _following(call, query, Choice(namespace=call.namespace, run_id=found))


@endpoint(
    "GET",
    "/v1/workflows/{name}/events",
    permission=Permission.EVENTS_READ,
    summary="Follow all runs of a workflow",
    tag="events",
    media_type=EVENT_STREAM,
    headers=_HEADERS,
    errors=("UNAVAILABLE",),
    returns=EventMessage,
)
async def follow_workflow(call: Call, name: Name, query: EventsQuery) -> Stream:
    """Events of every run of a workflow, whatever its version."""
    return await _following(call, query, Choice(namespace=call.namespace, workflow=name))


async def _following(call: Call, query: EventsQuery, choice: Choice) -> Stream:
    after = _place(call, query)
    await call.services.following.check()
    if query.type:
        choice = msgspec.structs.replace(choice, types=frozenset(query.type))
    seconds = float("inf") if query.seconds is None else query.seconds
    return Stream(_messages(call, choice, after, seconds), headers={"X-Accel-Buffering": "no"})


def _place(call: Call, query: EventsQuery) -> Place | None:
    header = call.header(_LAST_EVENT_ID)
    given = query.after if header is None else header
    if given is None:
        return None
    if not _PLACE.fullmatch(given):
        text = "is not the id of an event: send one as the stream gave it, or leave it out"
        raise InvalidInput([Problem(path=_LAST_EVENT_ID, message=text, code="BAD_CURSOR")])
    return Place.parse(given)


async def _messages(
    call: Call, choice: Choice, after: Place | None, seconds: float
) -> AsyncIterator[bytes]:
    following = call.services.following
    yield b"retry: %d\n\n" % RETRY_MILLISECONDS
    async with following.follow(choice, after) as follower:
        watch = _Watch(call, follower, seconds)
        while not watch.over:
            if data := await watch.next():
                yield data


class _Watch:
    """One stream: what comes next, whether it may go on, and when it was last heard of."""

    def __init__(self, call: Call, follower: Follower, seconds: float) -> None:
        self.over = False
        self._call = call
        self._follower = follower
        self._clock = call.services.clock
        now = self._clock.monotonic()
        self._end = now + seconds
        self._check_at = now + CHECK_SECONDS
        self._ping_at = now + PING_SECONDS

    async def next(self) -> bytes:
        """The next messages, a comment, or nothing."""
        now = self._clock.monotonic()
        if now >= self._check_at:
            if await refusal_of(self._call) is not None:
                return self._last(b": the credentials no longer hold\n\n")
            self._check_at = now + CHECK_SECONDS
        try:
            told = await self._follower.take(max(0.0, min(self._check_at, self._end) - now))
        except TooSlow:
            return self._last(b": too slow, go on with the last id\n\n")
        if told:
            return b"".join(_message(one) for one in told)
        return self._silence(self._clock.monotonic())

    def _silence(self, now: float) -> bytes:
        self.over = self._follower.live and now >= self._end
        if now < self._ping_at:
            return b""
        self._ping_at = now + PING_SECONDS
        return b": ping\nid: %s\n\n" % str(self._follower.seen).encode()

    def _last(self, data: bytes) -> bytes:
        self.over = True
        return data


def _message(one: Told | Gap) -> bytes:
    if isinstance(one, Told):
        return b"id: %s\ndata: %s\n\n" % (str(one.place).encode(), one.data)
    data = msgspec.json.encode(GapView(after=one.after, before=one.before))
    return b"event: %s\nid: %d\ndata: %s\n\n" % (GAP_EVENT.encode(), one.before - 1, data)


ENDPOINTS = (follow_events, follow_run, follow_workflow)
