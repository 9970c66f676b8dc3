"""One load from its first request to its last end, or as far as it came."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from bench.load.loads import Load
from bench.load.submitting import GivenUp, Submitter
from bench.load.tally import Tally
from bench.load.watching import Unreadable, Watcher
from bench.load.wire import Target

TELL_SECONDS = 1.0
TIMEOUT_SECONDS = 3_600.0
CONNECTIONS = 100
CONNECTIONS_BULK = 4

Tell: TypeAlias = Callable[[Tally], None]


class CannotBegin(Exception):
    """There is no server, or it does not let us; the text names the fix."""


@dataclass(frozen=True)
class Effort:
    """How a load is put upon a server."""

    connections: int
    bulk: bool
    timeout: float = TIMEOUT_SECONDS

    @classmethod
    def usual(cls, load: Load) -> Effort:
        """As the load is meant."""
        return cls(CONNECTIONS_BULK if load.bulk else CONNECTIONS, load.bulk)


async def probe(target: Target) -> None:
    """One look at the server; CannotBegin, so that what is wrong is said once and plainly."""
    try:
        wire = await target.connect()
        try:
            answer = await wire.ask(target.get("/metrics"))
        finally:
            wire.close()
    except OSError as error:
        fix = "start a server with `make up`, or name another with API_URL"
        raise CannotBegin(f"{target.url} does not answer ({_plain(error)}): {fix}") from error
    if answer.status in {401, 403}:
        fix = "set TIDEMILL_API_KEY to a key that may start and read runs and read metrics"
        raise CannotBegin(f"{target.url} refuses us ({answer.status}): {fix}")
    if answer.status != 200:
        raise CannotBegin(f"{target.url}/metrics answers {answer.status}: is this Tidemill?")


async def run_load(target: Target, load: Load, effort: Effort, tell: Tell) -> Tally:
    """Submit everything and see it end: a tally, however it went."""
    tally = Tally(load)
    watcher = Watcher(target, tally)
    try:
        await _see_through(tally, watcher, target, effort, tell)
    except (GivenUp, Unreadable) as error:
        tally.end = "given up"
        tally.first_error = tally.first_error or str(error)
    except TimeoutError:
        tally.end = "timed out"
    except asyncio.CancelledError:
        tally.end = "interrupted"
    finally:
        tally.ended = tally.ended or time.monotonic()
        watcher.close()
    return tally


def main_loop(work: Coroutine[Any, Any, Tally]) -> Tally:
    """Run it; Ctrl-C ends it, and the tally of what was done comes back all the same."""

    async def interruptible() -> Tally:
        task = asyncio.ensure_future(work)
        with suppress(NotImplementedError):  # not every system has signals
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        return await task

    return asyncio.run(interruptible())


async def _see_through(
    tally: Tally, watcher: Watcher, target: Target, effort: Effort, tell: Tell
) -> None:
    await watcher.begin()
    tally.began = time.monotonic()
    meanwhile = [
        asyncio.create_task(watcher.keep_counting()),
        asyncio.create_task(_keep_telling(tally, tell)),
    ]
    try:
        async with asyncio.timeout(effort.timeout):
            await Submitter(target, tally, bulk=effort.bulk).run(effort.connections)
            await watcher.until_ended()
            tally.ended = time.monotonic()
    finally:
        for task in meanwhile:
            task.cancel()
        await asyncio.gather(*meanwhile, return_exceptions=True)
    await watcher.settle()
    tell(tally)


async def _keep_telling(tally: Tally, tell: Tell) -> None:
    while True:
        await asyncio.sleep(TELL_SECONDS)
        tell(tally)


def _plain(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return error.strerror or str(error) or type(error).__name__
