"""`tidemill dead`: tasks that failed for good, and what to do about them."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_of, link_options, server_options
from tidemill.cli.options import complete, json_option, settings_options
from tidemill.cli.output import answer, say, width
from tidemill.runtime.settings import Settings


def _filters(command: Any) -> Any:
    """`--workflow` and `--group`."""
    for name, text in (
        ("--group", "Only those that failed alike, as `tidemill dead groups` names them."),
        ("--workflow", "Only those of this workflow."),
    ):
        command = click.option(name, metavar="NAME", help=text)(command)
    return command


@click.group(invoke_without_command=True)
@click.option("--run", metavar="RUN", help="Only those of one run.")
@_filters
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
@link_options
def dead(run: str | None, limit: int, as_json: bool, link: Link, **given: Any) -> None:
    """List tasks that failed for good, newest run first; show, replay or discard them.

    \b
    tidemill dead --workflow orders
    tidemill dead groups
    tidemill dead replay latest pay
    tidemill dead replay --workflow orders --rate 10
    """
    if click.get_current_context().invoked_subcommand is None:
        link.run(lambda reached: _list(reached, run, limit, as_json, given))


async def _list(
    reached: Any, run: str | None, limit: int, as_json: bool, given: dict[str, Any]
) -> None:
    from tidemill.cli.views.listing import dead_rows, print_json

    filters = {name: value for name, value in given.items() if value is not None}
    if run is not None:
        filters["run"] = await find_run(reached, run)
    letters = [one async for one in reached.client.dead_letters(limit, **filters)]
    if as_json:
        print_json(letters)
        return
    for line in dead_rows(letters, width()):
        say(line)
    if len(letters) == limit:
        say(f"(the newest {limit}; --limit shows more, `tidemill dead groups` fewer lines)")


@dead.command("list")
@click.option("--run", metavar="RUN", help="Only those of one run.")
@_filters
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
@link_options
def list_letters(run: str | None, limit: int, as_json: bool, link: Link, **given: Any) -> None:
    """The same as `tidemill dead`."""
    link.run(lambda reached: _list(reached, run, limit, as_json, given))


@dead.command("groups")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@json_option
@link_options
def groups(limit: int, as_json: bool, link: Link) -> None:
    """Count dead letters that failed alike, the largest group first."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import group_rows, print_json

        found = await reached.client.dead_letter_groups(limit)
        if as_json:
            print_json(found)
            return
        for line in group_rows(found, width()):
            say(line)

    link.run(work)


@dead.command("show", short_help="Show one dead letter with all its attempts.")
@click.argument("run")
@click.argument("task")
@json_option
@link_options
def show_one(run: str, task: str, as_json: bool, link: Link) -> None:
    """Show one dead letter: input, output, error and the attempts before."""

    async def work(reached: Any) -> None:
        from tidemill.cli.show import show_task

        await show_task(reached, await find_run(reached, run), task, as_json, dead=True)

    link.run(work)


@dead.command("discard", short_help="Let a dead letter go.")
@click.argument("run")
@click.argument("task")
@json_option
@link_options
def discard(run: str, task: str, as_json: bool, link: Link) -> None:
    """Let a dead letter go: it is no longer listed, and its run stays as it ended."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.text import printable

        run_id = await find_run(reached, run)
        await reached.client.discard(run_id, task)
        done = {"run": run_id, "task": task, "discarded": True}
        answer(done, f"{printable(task)} is discarded", as_json)

    link.run(work, changes=True)


@dead.command("replay", short_help="Try one again, or many, with fresh budgets.")
@click.argument("run", required=False)
@click.argument("task", required=False)
@_filters
@click.option("--rate", type=click.FloatRange(0, 1_000), default=50.0, help="So many a second.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=1_000, help="So many at most.")
@json_option
@server_options
@settings_options("run")
def replay(run: str | None, task: str | None, as_json: bool, **given: Any) -> int:
    """Try TASK of RUN again with fresh budgets, or all that --workflow or --group says.

    Runs reopen and go on from there, carried out by whoever serves. When nobody works on the store,
    this command sees a single run to its end.

    \b
    tidemill dead replay latest pay
    tidemill dead replay --workflow orders --rate 10
    """
    from tidemill.cli.replaying import replay_many, replay_one

    chosen = {name: given[name] for name in ("workflow", "group")}
    settings: Settings = given["settings"]
    link = link_of(settings, given)
    if run is not None and task is not None:
        return complete(replay_one(link, run, task, as_json))
    if run is not None or not any(chosen.values()):
        raise click.UsageError("name RUN and TASK, or --workflow, or --group")
    wanted = {**chosen, "rate": given["rate"], "limit": given["limit"]}
    return link.run(lambda reached: replay_many(reached, wanted, as_json), changes=True)
