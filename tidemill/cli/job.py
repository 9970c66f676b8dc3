"""`tidemill job`: single tasks by type and payload."""

from __future__ import annotations

from typing import Any

import click

from tidemill.cli.link import Link, find_run, link_options
from tidemill.cli.options import json_option, read_input
from tidemill.cli.output import command, say, width

STATES = (
    "PENDING",
    "READY",
    "RUNNING",
    "BACKOFF",
    "CANCELLING",
    "SUCCEEDED",
    "FAILED",
    "CANCELLED",
)


@click.group()
def job() -> None:
    """Jobs: single tasks of a known type, such as `default` or `noop`."""


@job.command("submit")
@click.argument("type_name", metavar="TYPE")
@click.option("--payload", metavar="JSON|@FILE", help="What the job is given.")
@click.option("--max-retries", type=click.IntRange(0, 1_000), help="3 when not given.")
@click.option("--queue", metavar="NAME")
@click.option("--priority", type=click.IntRange(-100, 100))
@click.option("--key", metavar="TEXT", help="Submit once: the same key names the same job.")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 when it did not succeed.")
@json_option
@link_options
def submit(
    type_name: str, payload: str | None, wait: bool, as_json: bool, link: Link, **given: Any
) -> int:
    """Submit a job of TYPE and print its id.

    \b
    tidemill job submit default --payload '{"to": "Ada"}' --wait
    """
    value = read_input(payload, "--payload")
    options = {name: said for name, said in given.items() if said is not None}

    async def work(reached: Any) -> int:
        from tidemill.cli.views.listing import print_json
        from tidemill.cli.waiting import see_to_its_end

        started = await reached.client.submit_job(type_name, value, **options)
        if not as_json:
            say(started.id)
        elif not wait or not reached.served:  # with --wait the run as it ended is told instead
            print_json(started)
        if not reached.served:
            say(f"nobody works on the store: {command('up')} does", err=True)
        if not wait or not reached.served:
            return 1 if wait else 0
        return await see_to_its_end(reached.client, started.id, as_json=as_json)

    return link.run(work, changes=True, creates=True)


@job.command("list")
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), multiple=True)
@click.option("--type", "type_name", metavar="TYPE", help="Only jobs of this type.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
@link_options
def list_jobs(
    state: tuple[str, ...], type_name: str | None, limit: int, as_json: bool, link: Link
) -> None:
    """List jobs, newest first."""
    filters: dict[str, Any] = {"state": [each.upper() for each in state], "type": type_name}

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import job_rows, print_json
        from tidemill.runtime.system import SystemClock

        found = [one async for one in reached.client.jobs(limit, **filters)]
        if as_json:
            print_json(found)
            return
        for line in job_rows(found, SystemClock().now(), width()):
            say(line)

    link.run(work)


@job.command("show", short_help="Show a job with its payload and result.")
@click.argument("job_id", metavar="JOB")
@json_option
@link_options
def show_job(job_id: str, as_json: bool, link: Link) -> None:
    """Show a job with its payload and its result; JOB is an end of its id, or its key."""

    async def work(reached: Any) -> None:
        from tidemill.cli.views.listing import print_json
        from tidemill.cli.views.report import job_report
        from tidemill.runtime.system import SystemClock

        shown = await reached.client.job(await find_run(reached, job_id))
        if as_json:
            print_json(shown)
            return
        for line in job_report(shown, SystemClock().now()):
            say(line)

    link.run(work)
