"""`tidemill wait`: the end of a run."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_options, refuse_forever
from tidemill.cli.options import json_option
from tidemill.cli.output import command, say


@click.command()
@click.argument("run")
@click.option("--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Give up after that.")
@json_option
@link_options
def wait(run: str, timeout: float | None, as_json: bool, link: Link) -> int:
    """Wait for the end of RUN and tell how it ended; exit 0 when it succeeded, 1 when not.

    \b
    tidemill wait latest && echo done
    tidemill wait latest --timeout 60 --json
    """

    async def work(reached: Any) -> int:
        from tidemill.cli.waiting import tell_end, unless_stopped, wait_for_end

        run_id = await find_run(reached, run)
        await refuse_forever(reached, run_id)

        async def see() -> int:
            try:
                await wait_for_end(reached.client, run_id, timeout)
            except TimeoutError as error:
                say(f"{error}: {command(f'show {run_id[-8:]}')}", err=True)
                return 1
            return await tell_end(reached.client, run_id, as_json=as_json)

        return await unless_stopped(see(), run_id)

    return link.run(work)
