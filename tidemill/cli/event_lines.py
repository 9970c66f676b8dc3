"""One run as lines of JSON: its events, and at last the run itself."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from tidemill.cli.conclusion import judge
from tidemill.cli.output import say
from tidemill.client.client import Client
from tidemill.domain.run import RUN_ENDED
from tidemill.protocol.cloud_events import event_of

LAST_EVENTS_SECONDS = 2.0
"""Events follow the commit that they tell; so long the last ones are waited for."""


async def follow_as_json(client: Client, run_id: str) -> int:
    """Print what happens until the run has ended, then the run; return its exit code."""
    if not (await client.run(run_id)).ended:
        told = asyncio.Event()
        printing = asyncio.create_task(_print_events(client, run_id, told))
        try:
            await client.wait(run_id)
            if printing.done():
                printing.result()  # events are refused: say so
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), LAST_EVENTS_SECONDS)
        finally:
            printing.cancel()
            await asyncio.gather(printing, return_exceptions=True)
    run = await client.run(run_id, include=["result"])
    say(msgspec.json.encode(run).decode())
    return judge(run) or 0


async def _print_events(client: Client, run_id: str, told: asyncio.Event) -> None:
    """Print until somebody stops it; `told` is set while the last word is that the run ended."""
    async for event in client.events(run_id):
        say(msgspec.json.encode(event).decode())
        known = event_of(event)
        if known is not None and known.fact.position is None:
            told.set() if known.fact.state in RUN_ENDED else told.clear()
