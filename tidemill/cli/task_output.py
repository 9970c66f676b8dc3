"""`tidemill logs`: what a task has printed."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, find_task, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import say


@click.command()
@click.argument("run")
@click.argument("task")
@click.option("--attempt", type=click.IntRange(1), help="Only this attempt; the latest by default.")
@click.option("--all", "everything", is_flag=True, help="Every attempt, each under a heading.")
@json_option
@link_options
def logs(
    run: str, task: str, attempt: int | None, everything: bool, as_json: bool, link: Link
) -> None:
    """Print what TASK of RUN has printed in its latest attempt.

    \b
    tidemill logs latest fetch
    tidemill logs latest fetch --all
    """

    async def work(reached: Any) -> None:
        details = await find_task(reached, await find_run(reached, run), task)
        chosen = list(details.attempts)
        if attempt is not None:
            chosen = [one for one in chosen if one.epoch == attempt]
        elif not everything:
            chosen = chosen[-1:]
        _print(chosen, as_json, headings=everything)

    link.run(work)


def _print(attempts: list[Any], as_json: bool, *, headings: bool) -> None:
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.text import printable_block

    if as_json:
        print_json([{"attempt": one.epoch, "output": one.output} for one in attempts])
        return
    for one in attempts:
        if headings:
            say(f"attempt {one.epoch}")
        if one.output:
            say(printable_block(one.output.rstrip("\n")))
