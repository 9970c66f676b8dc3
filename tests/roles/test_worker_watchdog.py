"""The watchdog: who blocks the event loop, told to those who suffer from it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.roles.worker_stage import Stage, Stream, a_token, an_assignment, on_stage
from tidemill.protocol.messages import Goodbye, Holdings, Logs
from tidemill.worker.executor import Call
from tidemill.worker.watchdog import Watchdog

BLOCKED = "the event loop has been blocked for 0.1 s by task task-0; an async function that "


def compute_for(seconds: float) -> None:
    time.sleep(seconds)  # what blocks is the subject here


async def block_or_wait(call: Call) -> None:
    if call.context.task == "task-0":
        await asyncio.sleep(0.05)  # so that the neighbours have begun
        compute_for(0.25)
    else:
        await asyncio.sleep(0.4)


@contextmanager
def watched(stage: Stage, **fields: Any) -> Iterator[threading.Event]:
    """A watchdog at work; the event says that it has given up."""
    hung = threading.Event()
    watchdog = Watchdog(
        lambda: stage.worker.attempts, on_hang=hung.set, **({"blocked_seconds": 0.1} | fields)
    )
    watchdog.start(asyncio.get_running_loop())
    try:
        yield hung
    finally:
        watchdog.stop()


async def text_of(stream: Stream, position: int) -> str:
    def texts(message: Logs) -> list[str]:
        return [chunk.text for chunk in message.chunks if chunk.token.position == position]

    return "".join(texts(await stream.hear(Logs, lambda message: bool(texts(message)))))


async def test_who_blocks_the_loop_is_told_where() -> None:
    async with on_stage(block_or_wait) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0))
            text = await text_of(stream, 0)

    assert text.startswith(BLOCKED)
    assert "in block_or_wait" in text
    assert "in compute_for\n    time.sleep(seconds)" in text
    assert "tidemill/worker" not in text


async def test_the_neighbours_are_told_who_it_was() -> None:
    async with on_stage(block_or_wait) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0), an_assignment(1))
            text = await text_of(stream, 1)

    assert text.startswith(BLOCKED)
    assert "compute_for" not in text


async def test_code_that_cannot_be_told_whose_it_is_is_shown_to_everyone() -> None:
    async def block_in_a_task_of_its_own(call: Call) -> None:
        if call.context.task == "task-0":
            await asyncio.gather(block_or_wait(call))
        else:
            await block_or_wait(call)

    async with on_stage(block_in_a_task_of_its_own) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0), an_assignment(1))
            text = await text_of(stream, 1)

    assert text.startswith("the event loop has been blocked for 0.1 s; an async")
    assert "in compute_for" in text


async def test_a_loop_that_only_waits_is_left_alone() -> None:
    async def wait(call: Call) -> None:
        await asyncio.sleep(0.3)

    async with on_stage(wait) as (stage, _):
        stream = await stage.welcome()

        with watched(stage):
            stream.assign(an_assignment(0))
            await stream.outcome(0)

    assert [message for message in stream.heard if isinstance(message, Logs)] == []


async def test_a_loop_that_does_not_come_back_is_given_up() -> None:
    async with on_stage(block_or_wait) as (stage, _):
        stream = await stage.welcome()

        with watched(stage, blocked_seconds=0.02, hung_seconds=0.1) as hung:
            stream.assign(an_assignment(0))
            await stream.outcome(0)

    assert hung.is_set()


async def test_what_is_told_reaches_the_scheduler_although_the_session_is_lost() -> None:
    async with on_stage(block_or_wait, silence_seconds=0.15) as (stage, _):
        first = await stage.welcome()

        with watched(stage):
            first.assign(an_assignment(0))
            second = await stage.welcome(session="s2")
            text = await text_of(second, 0)

    assert a_token(0) in {*(await second.hello()).held, *_finished(await second.hello())}
    assert text.startswith(BLOCKED)
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

    assert "the last words\n" in await text_of(stream, 0)
