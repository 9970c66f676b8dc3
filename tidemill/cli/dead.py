"""`tidemill dead`: tasks that failed for good, and how to try them again."""

from __future__ import annotations

import click

from tidemill.cli.options import complete, json_option, settings_options, store_option
from tidemill.cli.output import command, say, width
from tidemill.runtime.settings import Settings


@click.group(
    invoke_without_command=True, short_help="List, show and replay tasks that failed for good."
)
@click.option("--run", metavar="RUN", help="Only those of one run.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@json_option
@store_option
@click.pass_context
def dead(
    ctx: click.Context, run: str | None, limit: int, as_json: bool, settings: Settings
) -> None:
    """List tasks that failed for good, newest first; show or replay one."""
    if ctx.invoked_subcommand is None:
        complete(_list(run, limit, as_json, settings))


@dead.command("show")
@click.argument("run")
@click.argument("task")
@json_option
@store_option
def show_one(run: str, task: str, as_json: bool, settings: Settings) -> None:
    """Show one dead letter: input, output, error and the attempts before."""
    from tidemill.cli.show import show_task

    complete(show_task(run, task, as_json, settings, dead=True))


@dead.command("replay")
@click.argument("run")
@click.argument("task")
@settings_options("run")
def replay(run: str, task: str, settings: Settings) -> int:
    """Try TASK of RUN again with fresh budgets; the run reopens and goes on from there.

    The process that owns the store does it; when there is none, this command sees the run to its
    end.
    """
    return complete(_replay(run, task, settings))


async def _list(text: str | None, limit: int, as_json: bool, settings: Settings) -> None:
    from tidemill.cli.views.listing import dead_rows, print_json
    from tidemill.runtime import inspection
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    async with reading(settings.store, SystemClock()) as opened:
        run_id = (await inspection.find_run(opened, text)).id if text is not None else None
        letters = await inspection.dead_letters(opened, run_id, limit)
        names = await inspection.task_names(opened, letters)
    if as_json:
        print_json([{"id": n, "task": t} for n, t in zip(names, letters, strict=True)])
        return
    for line in dead_rows(letters, names, width()):
        say(line)
    if len(letters) == limit:
        say(f"(the newest {limit}; --limit shows more)")


async def _replay(text: str, task: str, settings: Settings) -> int:
    from tidemill.cli.session import RunSession
    from tidemill.cli.views.text import printable, short_id
    from tidemill.domain.identifiers import TaskKey
    from tidemill.runtime import inspection
    from tidemill.runtime.requests import replay_by_others
    from tidemill.runtime.resuming import settings_for
    from tidemill.runtime.system import SystemClock
    from tidemill.runtime.wiring import reading

    async with reading(settings.store, SystemClock()) as opened:
        run = await inspection.find_run(opened, text)
        plan = await inspection.read_plan(opened, run)
        settings = await settings_for(opened, settings, [run])
    key = TaskKey(run.id, inspection.find_task(plan, task))
    if await replay_by_others(settings, key) is not None:
        say(f"{printable(task)} runs again: {command(f'show {short_id(run.id)}')}")
        return 0
    return await RunSession(settings, [run.id]).run_again(replay=key)
