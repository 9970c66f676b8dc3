"""Many starts in one request: read in groups, committed together, answered in order.

Groups are what comes in at once, within a bound. While one is being committed the next is read and
checked; only so many are under way, so a client that sends faster than the store commits is held
up, and one that does not read its answers too. Lines may come for hours: whoever would be let in no
longer is told so in place of the next answer, and nothing behind that is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from tidemill.api.call import Call
from tidemill.api.lines import LineReader, TooLong
from tidemill.api.problems import details_of
from tidemill.api.welcome import CHECK_SECONDS, Welcome
from tidemill.domain.errors import InvalidInput, Problem, TidemillError
from tidemill.engine.runs import Started, StartRequest
from tidemill.protocol.resources.bulk import LINE_BYTES_MAX, BulkItem

GROUP_ITEMS_MAX = 1_000
GROUPS_UNDER_WAY_MAX = 4

Prepare: TypeAlias = Callable[[bytes], Awaitable[StartRequest]]
Line: TypeAlias = bytes | TooLong
Outcome: TypeAlias = Started | TidemillError

_encoder = msgspec.json.Encoder()


async def start_all(
    call: Call, lines: Sequence[Line], prepare: Prepare, first: int = 0
) -> list[BulkItem]:
    """Start everything that can be; an answer for each line, in order."""
    items: list[BulkItem] = []
    for begin in range(0, len(lines), GROUP_ITEMS_MAX):
        group = lines[begin : begin + GROUP_ITEMS_MAX]
        items += await _start_group(call, group, prepare, first + begin)
    return items


async def answer_lines(call: Call, prepare: Prepare) -> AsyncIterator[bytes]:
    """Lines of answers while lines of starts come in."""
    groups = _Groups()
    reading = asyncio.create_task(_read_groups(call, prepare, groups))
    try:
        while (group := await groups.waiting.get()) is not None:
            items = await group
            groups.room.release()
            yield b"".join(_encoder.encode(item) + b"\n" for item in items)
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        groups.forget()


class _Groups:
    """Groups of lines under way, in order; None behind the last one."""

    def __init__(self) -> None:
        self.room = asyncio.Semaphore(GROUPS_UNDER_WAY_MAX)
        self.waiting: asyncio.Queue[asyncio.Task[list[BulkItem]] | None] = asyncio.Queue()

    def forget(self) -> None:
        """Nobody waits for the answers any more; what is being committed will be."""
        while not self.waiting.empty():
            left = self.waiting.get_nowait()
            if left is not None:
                left.cancel()


async def _read_groups(call: Call, prepare: Prepare, groups: _Groups) -> None:
    count = 0
    welcome = Welcome(call, CHECK_SECONDS)
    try:
        async for lines in _lines(call):
            await groups.room.acquire()
            if refusal := await welcome.refusal():
                refused = asyncio.create_task(_refused(call, count, refusal))
                groups.waiting.put_nowait(refused)
                return
            task = asyncio.create_task(start_all(call, lines, prepare, count))
            groups.waiting.put_nowait(task)
            count += len(lines)
    finally:
        groups.waiting.put_nowait(None)


async def _lines(call: Call) -> AsyncIterator[list[Line]]:
    """The lines of a body, those together that came together."""
    reader = LineReader()
    async for piece in call.chunks():
        if lines := reader.feed(piece):
            yield lines
    if last := reader.end():
        yield last


async def _refused(call: Call, index: int, error: TidemillError) -> list[BulkItem]:
    return [_item(call, index, error)]


async def _start_group(
    call: Call, lines: Sequence[Line], prepare: Prepare, first: int
) -> list[BulkItem]:
    prepared = [await _prepared(line, prepare) for line in lines]
    requests = [one for one in prepared if isinstance(one, StartRequest)]
    outcomes = iter(await call.services.submissions.submit_many(requests))
    return [
        _item(call, first + place, one if isinstance(one, TidemillError) else next(outcomes))
        for place, one in enumerate(prepared)
    ]


async def _prepared(line: Line, prepare: Prepare) -> StartRequest | TidemillError:
    if isinstance(line, TooLong):
        text = f"the line is longer than {LINE_BYTES_MAX:,} bytes"
        return InvalidInput([Problem(path="", message=text, code="TOO_LARGE")])
    try:
        return await prepare(line)
    except TidemillError as error:
        return error


def _item(call: Call, index: int, outcome: Outcome) -> BulkItem:
    if isinstance(outcome, Started):
        return BulkItem(index=index, id=outcome.run_id, created=outcome.created)
    path = call.scope["path"]
    problem = details_of(outcome, instance=path, request_id=call.request_id)
    return BulkItem(index=index, problem=problem)


def elements(data: bytes, items_max: int) -> Iterator[bytes]:
    """The elements of a JSON array, each as it was written; InvalidInput for anything else."""
    try:
        parts = msgspec.json.decode(data, type=list[msgspec.Raw])
    except msgspec.ValidationError as error:
        text = "must be an array of items: put [ and ] around them, or send a line for each"
        raise InvalidInput([Problem(path="", message=text, code="WRONG_TYPE")]) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"the body is not JSON: {error}"
        raise InvalidInput([Problem(path="", message=text, code="NOT_JSON")]) from error
    if not parts:
        raise InvalidInput([Problem(path="", message="must not be empty", code="TOO_SHORT")])
    if len(parts) > items_max:
        text = f"has {len(parts):,} items, at most {items_max:,} are allowed: send NDJSON"
        raise InvalidInput([Problem(path="", message=text, code="TOO_LONG")])
    return (bytes(part) for part in parts)


__all__ = ["answer_lines", "elements", "start_all"]
