"""`tidemill conformance`: does a worker keep the promises of the protocol?"""

from __future__ import annotations

import shutil

import click

from tidemill.cli.options import complete, json_option
from tidemill.cli.output import answer, say

FAILED = 1
NAME_COLUMNS = 42


@click.command(short_help="Try a worker of any language against the worker protocol.")
@click.option(
    "--case", "names", multiple=True, metavar="TEXT", help="Only cases whose name has this in it."
)
@click.option("--jobs", type=click.IntRange(1, 32), default=4, show_default=True)
@json_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def conformance(names: tuple[str, ...], jobs: int, command: tuple[str, ...], as_json: bool) -> int:
    """Run COMMAND, a worker, against a real scheduler on a network that fails on purpose.

    COMMAND finds TIDEMILL_ADDRESS, TIDEMILL_TOKEN and TIDEMILL_SLOTS in its environment, and must
    offer the executors echo, fail, final and sleep, as docs/protocol.md defines them:

        tidemill conformance -- python examples/workers/plain_worker.py
    """
    return complete(_try(names, jobs, command, as_json))


async def _try(names: tuple[str, ...], jobs: int, command: tuple[str, ...], as_json: bool) -> int:
    from tidemill.cli.views.text import printable
    from tidemill.runtime.conformance.cases import CASES
    from tidemill.runtime.conformance.suite import Verdict, run_suite

    chosen = [case for case in CASES if not names or any(name in case.name for name in names)]
    if not chosen:
        raise click.UsageError("no case has that in its name")
    if shutil.which(command[0]) is None:
        raise click.UsageError(f"{command[0]} cannot be started: there is no such command")

    def tell(verdict: Verdict) -> None:
        word = "PASS" if verdict.passed else "FAIL"
        line = f"{word}  {verdict.name:<{NAME_COLUMNS}} {verdict.seconds:5.1f} s"
        say(f"{line}  {printable(verdict.reason)}".rstrip(), err=as_json)

    verdicts = await run_suite(command, cases=chosen, jobs=jobs, tell=tell)
    failed = sum(not verdict.passed for verdict in verdicts)
    answer(verdicts, f"{len(verdicts) - failed} of {len(verdicts)} cases passed", as_json)
    return FAILED if failed else 0
