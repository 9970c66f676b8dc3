"""`tidemill cancel`, `pause`, `continue` and `retry`: runs under way, and runs that failed."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import command, say


@click.command()
@click.argument("run")
@json_option
@link_options
def cancel(run: str, as_json: bool, link: Link) -> int:
    """Stop RUN: what waits is cancelled, what runs is asked to stop.

    RUN is the beginning or the end of a run's id, its key, or `latest`.

    \b
    tidemill cancel latest
    """

    async def work(reached: Any) -> int:
        run_id = await find_run(reached, run)
        before = await reached.client.run(run_id)
        if before.ended:
            _tell(before, f"has ended already: {before.state}", as_json)
            return 0
        after = await reached.client.cancel(run_id)
        if not reached.served:  # nobody else will see to it, so wait until it is done
            after = await reached.client.wait(run_id, SETTLE_SECONDS)
        _tell(after, f"is {after.state}" if after.ended else "is asked to stop", as_json)
        return 0

    return link.run(work, changes=True)


SETTLE_SECONDS = 10.0


@click.command()
@click.argument("run")
@json_option
@link_options
def pause(run: str, as_json: bool, link: Link) -> None:
    """Begin no more tasks of RUN; those that run go on. `tidemill continue` lets it go on.

    \b
    tidemill pause latest
    tidemill pause 3f9c12ab --json
    """

    async def work(reached: Any) -> None:
        after = await reached.client.pause(await find_run(reached, run))
        _tell(after, f"is {after.state}: {command(f'continue {after.id[-8:]}')}", as_json)

    link.run(work, changes=True)


@click.command("continue")
@click.argument("run")
@json_option
@link_options
def continue_run(run: str, as_json: bool, link: Link) -> None:
    """Let a RUN go on that was paused.

    (`tidemill resume` is something else: it finishes runs that a crash or Ctrl-C left.)

    \b
    tidemill continue latest
    """

    async def work(reached: Any) -> None:
        after = await reached.client.resume(await find_run(reached, run))
        _tell(after, f"is {after.state}", as_json)

    link.run(work, changes=True)


@click.command()
@click.argument("run")
@json_option
@link_options
def retry(run: str, as_json: bool, link: Link) -> None:
    """Try every failed task of RUN again with fresh budgets, and go on from there.

    For a single one see `tidemill dead replay`.

    \b
    tidemill retry latest
    """

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json
        from tidemill.cli.views.text import plural

        after = await reached.client.retry(await find_run(reached, run))
        if as_json:
            print_json(after)
            return
        _tell(after.run, f"tries {plural(after.tasks, 'task')} again", as_json=False)
        if not reached.served:
            say(f"nobody works on the store: {command('resume')} does", err=True)

    link.run(work, changes=True)


def _tell(run: Any, words: str, as_json: bool) -> None:
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.report import run_name

    if as_json:
        print_json(run)
    else:
        say(f"run {run.id} ({run_name(run)}) {words}")
