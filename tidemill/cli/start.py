"""`tidemill start`: commit a run, for the processes that serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tidemill.cli.link import Link, link_options
from tidemill.cli.options import json_option, read_input
from tidemill.cli.output import command, say


@click.command()
@click.argument("workflow", metavar="FILE|NAME")
@click.option("--input", "value", metavar="JSON|@FILE", help="The run's input.")
@click.option("--key", metavar="TEXT", help="Start once: the same key names the same run.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="May be repeated.")
@click.option("--version", type=click.IntRange(1), help="Of a deployed workflow; else the latest.")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 when it did not succeed.")
@json_option
@link_options
def start(workflow: str, value: str | None, wait: bool, **given: Any) -> int:
    """Start a workflow and print the id of the run.

    FILE is YAML, JSON or Python, as for `run`. NAME is a workflow that was deployed.

    \b
    tidemill start flow.yaml --input '{"kilos": 12}' --wait
    tidemill start nightly-report --key report-2027-01-15
    """
    from tidemill.domain.inputs import prepare_input

    link: Link = given["link"]
    wanted, imports = _wanted(workflow)
    value_given = read_input(value)
    if not isinstance(wanted, str):
        prepare_input(wanted.input, value_given)  # refused here, before anything is started
    options = _options(given)

    async def work(reached: Any) -> int:
        started = await _started(reached.client, wanted, value_given, options)
        followed, as_json = wait and reached.served, given["as_json"]
        if not (followed and as_json):  # there the run as it ended is told instead
            _tell(started, as_json)
        if imports and reached.store is not None:
            await _remember(reached, started.id, imports)
        await _tell_who_is_missing(reached)
        if not followed:
            return 1 if wait else 0
        from tidemill.cli.waiting import see_to_its_end

        return await see_to_its_end(reached.client, started.id, as_json=as_json)

    return link.run(work, changes=True, creates=True)


async def _started(client: Any, wanted: Any, value: Any, options: dict[str, Any]) -> Any:
    from tidemill.domain.errors import NotFound

    try:
        return await client.start(wanted, value, **options)
    except NotFound as error:
        if not isinstance(wanted, str):
            raise
        async for _ in client.workflows(limit=1):
            break  # a namespace that is not there is refused here, in its own words
        fix = f"{command('workflows list')} has those deployed; a file ends in .yaml, .json or .py"
        raise NotFound(f"{error}: {fix}") from error


async def _tell_who_is_missing(reached: Any) -> None:
    """Say that a run waits for somebody; where somebody serves, `show` and `--wait` say it."""
    if not reached.served:
        hint = f"{command('up')} or {command('resume')} does"
        say(f"nobody works on the store: {hint}", err=True)
    elif reached.store and reached.store.dsn and not await reached.client.workers():
        hint = f"{command('up')} runs it, or a scheduler with workers"
        say(f"no worker is connected: {hint}", err=True)


async def _remember(reached: Any, run_id: str, imports: tuple[str, ...]) -> None:
    """Note which modules the run needs, for who goes on with it later."""
    from tidemill.runtime.sources import Sources

    version_id = (await reached.client.run(run_id)).version_id
    Sources(reached.store).remember(version_id, imports)


def _wanted(text: str) -> tuple[Any, tuple[str, ...]]:
    """A definition and its modules for a file or a Python object, else the name of a workflow."""
    from tidemill.cli.describe import load_definition
    from tidemill.sdk.python_source import names_python

    if names_python(text) or Path(text).suffix or Path(text).exists():
        loaded = load_definition(text)
        return loaded.workflow, loaded.imports
    return text, ()


def _options(given: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name in ("key", "version"):
        if given[name] is not None:
            options[name] = given[name]
    if given["labels"]:
        options["labels"] = dict(map(label_of, given["labels"]))
    return options


def label_of(text: str) -> tuple[str, str]:
    """`NAME=VALUE` taken apart."""
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--label")
    return name, value


def _tell(started: Any, as_json: bool) -> None:
    from tidemill.cli.views.listing import print_json

    if as_json:
        print_json(started)
        return
    say(started.id)
    if not started.created:
        say("this key has started it before", err=True)
