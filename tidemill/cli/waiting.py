"""Waiting for the end of a run, which says why when nothing moves."""

from __future__ import annotations

from tidemill.cli.conclusion import conclude
from tidemill.cli.output import say
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
    ended = await wait_for_end(client, run_id)
    if not as_json:
        return await conclude(client, run_id) or 0
    print_json(await client.run(run_id, include=["result"]))
    return 0 if ended.state is RunState.SUCCEEDED else 1


async def _tell_lacks(client: Client, run_id: str) -> None:
    for wait in (await client.run(run_id, include=["waits"])).waits or ():
        if wait.code == LACK_OF_WORKERS:
            say(f"{printable(wait.task)} waits: {printable(wait.message)}", err=True)
