"""`tidemill show`: one run, or one task of it, in full."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, json_option, store_option
from tidemill.cli.output import command, say, width
from tidemill.runtime.settings import Settings

ROWS_MAX = 100


@click.command(short_help="Show a run, or one task of it.")
@click.argument("run")
@click.argument("task", required=False)
@click.option("--all", "everything", is_flag=True, help="Every task, however many.")
@json_option
@store_option
def show(run: str, task: str | None, everything: bool, as_json: bool, settings: Settings) -> None:
    """Show RUN and what each waiting task waits for, or all that is kept about one TASK of it.

    RUN is the beginning or the end of a run's id, or `latest`.
    """
    rows_max = 10**9 if everything else ROWS_MAX
    if task is None:
        complete(_show_run(run, rows_max, as_json, settings))
    else:
        complete(show_task(run, task, as_json, settings))


async def _show_run(text: str, rows_max: int, as_json: bool, settings: Settings) -> None:
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.report import run_heading, run_input, run_output, task_table
    from tidemill.runtime import inspection
    from tidemill.runtime.requests import is_owned, progress_by_owner
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    address, clock = settings.store, SystemClock()
    async with reading(address, clock) as opened:
        run = await inspection.find_run(opened, text)
        progress = await progress_by_owner(address, run.id)
        picture = await inspection.read_picture(opened, run, progress, owned=is_owned(address))
        given = (await opened.payloads.inputs([run.id])).get(run.id, b"")
    if as_json:
        print_json({"run": run, "tasks": inspection.named(picture)})
        return
    now = clock.now()
    for line in (
        *run_heading(run, now, owned=picture.owned),
        *run_input(given),
        "",
        *task_table(picture, rows_max, now, width()),
        *run_output(run, picture.output),
    ):
        say(line)


async def show_task(
    text: str, task: str, as_json: bool, settings: Settings, *, dead: bool = False
) -> None:
    """Print all that is kept about one task; with `dead`, refuse one that is no dead letter."""
    from tidemill.cli.views.listing import print_json
    from tidemill.cli.views.report import task_report
    from tidemill.cli.views.text import short_id
    from tidemill.domain.errors import Conflict
    from tidemill.domain.task_run import TaskState
    from tidemill.runtime import inspection
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    async with reading(settings.store, SystemClock()) as opened:
        run = await inspection.find_run(opened, text)
        plan = await inspection.read_plan(opened, run)
        position = inspection.find_task(plan, task)
        report = await inspection.read_task(opened, run, plan, position)
    if dead and report.task.state is not TaskState.FAILED:
        raise Conflict(
            f"{report.name} is no dead letter, it is {report.task.state}: "
            + command(f"show {short_id(run.id)} {report.name}")
        )
    if as_json:
        print_json(report)
        return
    for line in task_report(report, SystemClock().now()):
        say(line)
