"""`tidemill workers` and `tidemill queues`: who serves what, and what waits."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say, width


@click.command()
@json_option
@link_options
def workers(as_json: bool, link: Link) -> None:
    """List connected workers: how busy they are, and which queues, labels and work they offer.

    \b
    tidemill workers
    tidemill workers --json | jq '.[].queues'
    """

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json, worker_rows
        from tidemill.runtime.system import SystemClock

        found = await reached.client.workers()
        if as_json:
            print_json(found)
            return
        for line in worker_rows(found, SystemClock().now(), width()):
            say(line)

    link.run(work)


@click.command()
@json_option
@link_options
def queues(as_json: bool, link: Link) -> None:
    """List queues: what is ready, runs or waits to be tried again, and the slots that serve it.

    \b
    tidemill queues
    tidemill queues --server https://tidemill.example.com
    """

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json, queue_rows
        from tidemill.runtime.system import SystemClock

        found = await reached.client.queues()
        if as_json:
            print_json(found)
            return
        for line in queue_rows(found, SystemClock().now(), width()):
            say(line)

    link.run(work)
