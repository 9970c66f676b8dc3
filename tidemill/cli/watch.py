"""`tidemill watch`: a run, live."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_options, refuse_forever
from tidemill.cli.options import json_option
from tidemill.cli.output import command, say


@click.command()
@click.argument("run")
@json_option
@link_options
def watch(run: str, as_json: bool, link: Link) -> int:
    """Watch RUN until it ends: as a tree in a terminal, as lines elsewhere.

    With --json each event from now on is a line of JSON, and the last line is the run as it ended.

    Ctrl-C stops watching; the run goes on. Exit 0 when the run succeeded, 1 when it did not.

    \b
    tidemill start flow.yaml && tidemill watch latest
    """

    async def work(reached: Any) -> int:
        from tidemill.cli.conclusion import conclude
        from tidemill.cli.event_lines import follow_as_json
        from tidemill.cli.interrupts import Interrupts
        from tidemill.cli.remote_watch import RemoteWatch

        run_id = await find_run(reached, run)
        await refuse_forever(reached, run_id)
        with Interrupts() as interrupts:
            watched = RemoteWatch(reached.client, run_id).follow
            follow = partial(follow_as_json, reached.client, run_id) if as_json else watched
            following = asyncio.create_task(follow())
            waiting = asyncio.create_task(interrupts.first.wait())
            await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                say(f"the run goes on: {command(f'watch {run_id[-8:]}')}", err=True)
                return interrupts.exit_code
            code = following.result()
        return code if code is not None else await conclude(reached.client, run_id) or 0

    return link.run(work)
