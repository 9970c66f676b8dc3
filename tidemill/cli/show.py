"""`tidemill show`: one run, or one task of it, in full."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, find_task, link_options
from tidemill.cli.options import json_option
from tidemill.cli.output import command, say, width

ROWS_MAX = 100


@click.command()
@click.argument("run")
@click.argument("task", required=False)
@click.option("--all", "everything", is_flag=True, help="Every task, however many.")
@json_option
@link_options
def show(run: str, task: str | None, everything: bool, as_json: bool, link: Link) -> None:
    """Show RUN and what each waiting task waits for, or all that is kept about one TASK of it.

    RUN is the beginning or the end of a run's id, its key, or `latest`.

    \b
    tidemill show latest
    tidemill show 3f9c12ab fetch --json
    """

    async def work(reached: Any) -> None:
        run_id = await find_run(reached, run)
        if task is None:
            await _show_run(reached, run_id, 10**9 if everything else ROWS_MAX, as_json)
        else:
            await show_task(reached, run_id, task, as_json)

    link.run(work)


async def _show_run(reached: Any, run_id: str, rows_max: int, as_json: bool) -> None:
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.report import run_heading, run_input, run_output, task_table
    from tidemill.runtime.system import SystemClock

    client = reached.client
    run = await client.run(run_id, include=["input", "result"])
    tasks = [task async for task in client.tasks(run_id)]
    if as_json:
        print_json({"run": run, "tasks": tasks})
        return
    now = SystemClock().now()
    for line in (
        *run_heading(run, now, served=reached.served),
        *run_input(run),
        "",
        *task_table(tasks, rows_max, now, width()),
        *run_output(run),
    ):
        say(line)


async def show_task(
    reached: Any, run_id: str, task: str, as_json: bool, *, dead: bool = False
) -> None:
    """Print all that is kept about one task; with `dead`, refuse one that is no dead letter."""
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.report import task_report
    from tidemill.cli.views.text import short_id
    from tidemill.domain.errors import Conflict
    from tidemill.domain.task_run import TaskState
    from tidemill.runtime.system import SystemClock

    details = await find_task(reached, run_id, task)
    if dead and details.task.state is not TaskState.FAILED:
        raise Conflict(
            f"{task} is no dead letter, it is {details.task.state}: "
            + command(f"show {short_id(run_id)} {task}")
        )
    if as_json:
        print_json(details)
        return
    run = await reached.client.run(run_id)
    for line in task_report(details, run, SystemClock().now()):
        say(line)
