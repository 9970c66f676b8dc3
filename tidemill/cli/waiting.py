"""Waiting for the end of a run, which says why when nothing moves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tidemill.cli.conclusion import conclude
from tidemill.cli.interrupts import Interrupts
from tidemill.cli.output import command, say
from tidemill.cli.views.listing import print_json
from tidemill.cli.views.text import printable
from tidemill.client.client import Client
from tidemill.domain.run import RunState
from tidemill.protocol.resources import RunView

PATIENCE_SECONDS = 3.0
LACK_OF_WORKERS = "WORKERS"


async def wait_for_end(client: Client, run_id: str, timeout: float | None = None) -> RunView:
    """The run as it ended; what no worker offers to run is told once, on standard error."""
    if timeout is not None and timeout <= PATIENCE_SECONDS:
        return await client.wait(run_id, timeout)
    try:
        return await client.wait(run_id, PATIENCE_SECONDS)
    except TimeoutError:
        await _tell_lacks(client, run_id)
    return await client.wait(run_id, None if timeout is None else timeout - PATIENCE_SECONDS)


async def see_to_its_end(client: Client, run_id: str, *, as_json: bool) -> int:
    """Wait, and tell how the run ended: one JSON document, or words; return the exit code."""

    async def wait() -> int:
        await wait_for_end(client, run_id)
        return await tell_end(client, run_id, as_json=as_json)

    return await unless_stopped(wait(), run_id)


async def tell_end(client: Client, run_id: str, *, as_json: bool) -> int:
    """Tell how a run has ended, as `see_to_its_end` does."""
    if not as_json:
        return await conclude(client, run_id) or 0
    ended = await client.run(run_id, include=["result"])
    print_json(ended)
    return 0 if ended.state is RunState.SUCCEEDED else 1


async def unless_stopped(work: Coroutine[Any, Any, int], run_id: str) -> int:
    """The exit code of looking at a run; a signal ends the looking, and the run goes on."""
    with Interrupts() as interrupts:
        working = asyncio.create_task(work)
        waiting = asyncio.create_task(interrupts.first.wait())
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        say(f"the run goes on: {command(f'watch {run_id[-8:]}')}", err=True)
        return interrupts.exit_code


async def _tell_lacks(client: Client, run_id: str) -> None:
    for wait in (await client.run(run_id, include=["waits"])).waits or ():
        if wait.code == LACK_OF_WORKERS:
            say(f"{printable(wait.task)} waits: {printable(wait.message)}", err=True)
