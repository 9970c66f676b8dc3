"""The watchdog: who blocks the event loop, told to those who suffer from it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.roles.worker_stage import Stage, Stream, a_token, an_assignment, on_stage
from tidemill.protocol.messages import Goodbye, Holdings, Logs
from tidemill.worker.executor import Call
from tidemill.worker.watchdog import Watchdog

BLOCKED = "the event loop has been blocked for 0.1 s by task task-0; an async function that "
BLOCK_SECONDS_MAX = 10.0
Do = Callable[[Call], Awaitable[None]]


@pytest.fixture
def barked() -> Iterator[threading.Event]:
    """Set when the watchdog has told everyone of what blocks in this file."""
    event = threading.Event()

    def listen(record: logging.LogRecord) -> bool:
        if "in compute_until" in record.getMessage():
            event.set()
        return True

    logger = logging.getLogger("tidemill.worker")
    logger.addFilter(listen)
    yield event
    logger.removeFilter(listen)


def compute_until(told: threading.Event, longer_seconds: float) -> None:
    told.wait(BLOCK_SECONDS_MAX)  # what blocks is the subject here
    time.sleep(longer_seconds)


def blocks_until(told: threading.Event, longer_seconds: float = 0.0) -> Do:
    async def block_or_wait(call: Call) -> None:
        if call.context.task == "task-0":
            await asyncio.sleep(0.05)  # so that the neighbours have begun
            compute_until(told, longer_seconds)
        else:
            await asyncio.Event().wait()

    return block_or_wait


@contextmanager
def watched(
    stage: Stage, on_hang: Callable[[], None] = lambda: None, **fields: Any
) -> Iterator[None]:
    """A watchdog at work."""
    watchdog = Watchdog(
        lambda: stage.worker.attempts, on_hang=on_hang, **({"blocked_seconds": 0.1} | fields)
    )
    watchdog.start(asyncio.get_running_loop())
    try:
        yield
    finally:
        watchdog.stop()


async def text_of(stream: Stream, position: int, words: str) -> str:
    """What was told to a task, from these words on: who stalled before them is no matter."""

    def text(message: Logs) -> str:
        chunks = (chunk for chunk in message.chunks if chunk.token.position == position)
        return "".join(chunk.text for chunk in chunks)

    found = text(await stream.hear(Logs, lambda message: words in text(message)))
    return found[found.index(words) :]


async def test_who_blocks_the_loop_is_told_where(barked: threading.Event) -> None:
    async with on_stage(blocks_until(barked)) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0))
            text = await text_of(stream, 0, BLOCKED)

    assert "in block_or_wait" in text
    assert "in compute_until\n    told.wait(BLOCK_SECONDS_MAX)" in text
    assert "tidemill/worker" not in text


async def test_the_neighbours_are_told_who_it_was(barked: threading.Event) -> None:
    async with on_stage(blocks_until(barked)) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0), an_assignment(1))
            text = await text_of(stream, 1, BLOCKED)

    assert "compute_until" not in text


async def test_code_that_cannot_be_told_whose_it_is_is_shown_to_everyone(
    barked: threading.Event,
) -> None:
    block_or_wait = blocks_until(barked)

    async def block_in_a_task_of_its_own(call: Call) -> None:
        if call.context.task == "task-0":
            await asyncio.gather(block_or_wait(call))
        else:
            await block_or_wait(call)

    async with on_stage(block_in_a_task_of_its_own) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0), an_assignment(1))
            await text_of(stream, 1, "in compute_until")

    chunks = [chunk for one in stream.heard if isinstance(one, Logs) for chunk in one.chunks]
    nobody = "the event loop has been blocked for 0.1 s; an async"
    assert all(chunk.text.startswith(nobody) for chunk in chunks)


async def test_a_loop_that_only_waits_is_left_alone() -> None:
    async def wait(call: Call) -> None:
        await asyncio.sleep(1)

    async with on_stage(wait) as (stage, _):
        stream = await stage.welcome()

        with watched(stage, blocked_seconds=0.5):
            stream.assign(an_assignment(0))
            await stream.outcome(0)

    assert [message for message in stream.heard if isinstance(message, Logs)] == []


async def test_a_loop_that_does_not_come_back_is_given_up() -> None:
    hung = threading.Event()
    async with on_stage(blocks_until(hung)) as (stage, _):
        stream = await stage.welcome()

        with watched(stage, hung.set, blocked_seconds=0.02, hung_seconds=0.1):
            stream.assign(an_assignment(0))
            await stream.outcome(0)

    assert hung.is_set()


async def test_what_is_told_reaches_the_scheduler_although_the_session_is_lost(
    barked: threading.Event,
) -> None:
    block = blocks_until(barked, longer_seconds=2)
    async with on_stage(block, silence_seconds=1) as (stage, _):
        first = await stage.welcome()

        with watched(stage):
            first.assign(an_assignment(0))
            second = await stage.welcome(session="s2")
            await text_of(second, 0, BLOCKED)

    assert a_token(0) in {*(await second.hello()).held, *_finished(await second.hello())}
    assert [message for message in first.heard if isinstance(message, Logs)] == []


def _finished(hello: Any) -> list[Any]:
    return [outcome.token for outcome in hello.finished]


async def test_a_worker_that_leaves_says_first_what_its_tasks_wrote() -> None:
    async def write(call: Call) -> None:
        call.context.voice.write("the last words\n")
        await asyncio.Event().wait()

    async with on_stage(write, flush_seconds=60) as (stage, _):
        stream = await stage.welcome()
        stream.assign(an_assignment(0))
        await stream.hear(Holdings, lambda holdings: bool(holdings.held))
        await stage.worker.drain(0)
        await stream.hear(Goodbye)

    assert await text_of(stream, 0, "the last words\n")
