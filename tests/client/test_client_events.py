"""Server-sent events through the client: in order, and behind the last one after a break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from tests.api.crew import Crew, a_definition
from tests.client.scripted import Script, StillSystem, scripted
from tidemill.api.app import Application
from tidemill.client import Client
from tidemill.client.in_process import AppTransport
from tidemill.client.server_events import messages
from tidemill.domain.errors import Unavailable
from tidemill.domain.workflow import Workflow
from tidemill.protocol.resources import EventView, GapView

ORDERS = msgspec.convert(a_definition(), Workflow)


async def _until_completed(events: AsyncIterator[EventView]) -> list[str]:
    seen = []
    async for event in events:
        seen.append(event.type.removeprefix("tidemill.").removesuffix(".v1"))
        if seen[-1] == "workflow.completed":
            return seen
    raise AssertionError("the stream has ended")


async def test_the_events_of_a_run_are_followed_from_its_beginning(
    client: Client, crew: Crew
) -> None:
    handle = await client.submit(ORDERS)

    seen = await asyncio.wait_for(_until_completed(handle.events(after="0")), 10)

    assert seen[0] == "workflow.started"
    assert seen.count("task.completed") == 2


async def _nothing(events: AsyncIterator[EventView]) -> None:
    async for event in events:
        raise AssertionError(f"{event.id} was not sent")


class _Cutting(AppTransport):
    """Breaks every stream after a few pieces."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if "events" in str(request.url):
            self.asked.append(request.headers.get("Last-Event-ID"))
            response.stream = _Cut(response.stream)
        return response

    def __init__(self, app: Application) -> None:
        super().__init__(app)
        self.asked: list[str | None] = []


class _Cut(httpx.AsyncByteStream):
    def __init__(self, whole: object) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._whole:  # type: ignore[attr-defined]
            yield piece
            count += piece.count(b"data:")
            if count:
                raise httpx.ReadError("cut")

    async def aclose(self) -> None:
        await self._whole.aclose()  # type: ignore[attr-defined]


async def test_a_stream_that_breaks_goes_on_behind_the_last_event(
    app: Application, crew: Crew
) -> None:
    transport = _Cutting(app)
    async with Client("http://inside", transport=transport) as client:
        handle = await client.submit(ORDERS)
        await handle.wait(10)

        events = handle.events(after="0")
        first = [await anext(events) for _ in range(4)]
        rest = await asyncio.wait_for(_until_completed(events), 20)

    ids = [event.id for event in first]
    assert len(set(ids)) == 4
    assert rest[-1] == "workflow.completed"
    assert len(set(transport.asked)) == len(transport.asked)


async def test_a_server_that_stays_away_is_told_in_the_end() -> None:
    system, script = StillSystem(), Script(httpx.ConnectError("refused"))

    with pytest.raises(Unavailable):
        await _nothing(scripted(script, system).events())

    assert len(script.asked) == 11


async def test_a_gap_is_told_and_comments_mean_nothing() -> None:
    gaps: list[GapView] = []
    stream = b': ping\n\nevent: gap\nid: 6\ndata: {"after": 1, "before": 7}\n\n'
    script = Script(httpx.Response(200, content=stream), httpx.ConnectError("refused"))

    with pytest.raises(Unavailable):
        await _nothing(scripted(script).events(on_gap=gaps.append))

    assert gaps == [GapView(after=1, before=7)]
    assert script.asked[1].headers["Last-Event-ID"] == "6"


async def test_only_line_feeds_end_a_line() -> None:
    text = "id: 1\r\ndata: a\u2028b\x85c\r\ndata: d\r\n\r\n".encode()

    async def pieces() -> AsyncIterator[bytes]:
        for place in range(len(text)):
            yield text[place : place + 1]

    [message] = [one async for one in messages(pieces())]

    assert (message.id, message.data.decode()) == ("1", "a\u2028b\x85c\nd")
