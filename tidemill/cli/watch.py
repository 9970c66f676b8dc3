"""`tidemill watch`: a run, live."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_options, refuse_forever
from tidemill.cli.options import json_option


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
        from tidemill.cli.remote_watch import RemoteWatch
        from tidemill.cli.waiting import unless_stopped

        run_id = await find_run(reached, run)
        await refuse_forever(reached, run_id)

        async def follow() -> int:
            if as_json:
                return await follow_as_json(reached.client, run_id)
            await RemoteWatch(reached.client, run_id).follow()
            return await conclude(reached.client, run_id) or 0

        return await unless_stopped(follow(), run_id)

    return link.run(work)
