"""A small table of endpoints to try the framework with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from tidemill.api.routing import (
    AUTHENTICATED,
    EVENT_STREAM,
    JSON,
    NDJSON,
    PUBLIC,
    Answer,
    Call,
    Stream,
    endpoint,
)
from tidemill.domain.errors import Conflict, NotFound, TidemillError, Unavailable
from tidemill.domain.permissions import Permission


class Colour(StrEnum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something inside."""

    size: Annotated[int, msgspec.Meta(ge=1, le=10)]


class NewThing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent to make a thing."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=20)]
    colour: Colour = Colour.RED
    parts: tuple[Part, ...] = ()
    payload: Any = None


class ThingsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which things to list."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    colour: tuple[Colour, ...] = ()
    fresh: bool = False
    after: str | None = None


class ThingView(msgspec.Struct, frozen=True):
    """A thing."""

    id: str
    name: str
    colour: Colour = Colour.RED


@endpoint(
    "POST",
    "/things",
    permission=Permission.RUNS_START,
    summary="Make a thing",
    tag="things",
    status=201,
    errors=("CONFLICT",),
    example={"name": "bolt"},
)
async def make_thing(call: Call, body: NewThing) -> ThingView:
    """Things are forgotten at once."""
    if body.name == "double":
        raise Conflict("there is one already", code="ALREADY_EXISTS")
    return ThingView("1", body.name, body.colour)


@endpoint("GET", "/things", permission=Permission.RUNS_READ, summary="List things", tag="things")
async def list_things(call: Call, query: ThingsQuery) -> list[Any]:
    """What was asked for comes back."""
    return [query.limit, query.colour, query.fresh, query.after, call.namespace]


@endpoint(
    "GET",
    "/things/{thing_id}",
    permission=Permission.RUNS_READ,
    summary="Get a thing",
    tag="things",
    errors=("NOT_FOUND",),
)
async def get_thing(call: Call, thing_id: str) -> Answer[ThingView]:
    """The thing `none` is not there."""
    if thing_id == "none":
        raise NotFound(f"there is no thing {thing_id}")
    return Answer(ThingView(thing_id, "bolt"), headers={"ETag": '"v1"'})


@endpoint(
    "PUT",
    "/things/{thing_id}/sizes/{number}",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Set a size",
    tag="things",
)
async def set_size(call: Call, thing_id: str, number: int) -> None:
    """Only if it is as it was seen."""
    call.require_match('"v1"')


@endpoint(
    "POST",
    "/things:bulk",
    permission=Permission.RUNS_START,
    summary="Make many",
    tag="things",
    consumes={JSON: list[NewThing], NDJSON: NewThing},
    media_type=NDJSON,
)
async def make_many(call: Call) -> Stream:
    """Names line by line."""
    return Stream(_names(call))


async def _names(call: Call) -> AsyncIterator[bytes]:
    if call.media_type == JSON:
        for thing in await call.decode(list[NewThing]):
            yield thing.name.encode() + b"\n"
        return
    async for line in call.lines(line_bytes_max=100):
        yield line + b"\n"


@endpoint("GET", "/me", permission=AUTHENTICATED, summary="Who am I", tag="things")
async def me(call: Call) -> list[str]:
    """Whoever is known."""
    return [call.principal.id, call.request_id, call.peer]


@endpoint("GET", "/open", permission=PUBLIC, summary="For everybody", tag="things")
async def for_everybody(call: Call) -> str:
    """Nobody is asked who they are."""
    return call.principal.kind


@endpoint("GET", "/broken", permission=PUBLIC, summary="A mistake of ours", tag="things")
async def broken(call: Call) -> None:
    """Raises what nobody thought of."""
    raise RuntimeError("password=hunter2")


@endpoint("GET", "/refused", permission=PUBLIC, summary="A refusal of the store", tag="things")
async def refused(call: Call) -> None:
    """Raises what was not meant for clients."""
    raise TidemillError("PostgreSQL: password=hunter2")


@endpoint("GET", "/away", permission=PUBLIC, summary="The store is away", tag="things")
async def away(call: Call) -> None:
    """A passing fault."""
    raise Unavailable("the store does not answer")


@endpoint(
    "GET", "/ticks", permission=PUBLIC, summary="Ticks", tag="things", media_type=EVENT_STREAM
)
async def ticks(call: Call) -> Stream:
    """Two of them, and then silence until the process ends."""
    return Stream(_ticks(call))


async def _ticks(call: Call) -> AsyncIterator[bytes]:
    yield b"data: 1\n\n"
    yield b"data: 2\n\n"
    await call.services.closing.wait()


ENDPOINTS = (
    make_thing,
    list_things,
    get_thing,
    set_size,
    make_many,
    me,
    for_everybody,
    broken,
    refused,
    away,
    ticks,
)
