"""Runs one load test: `python -m bench.load jobs|flaky|workflow`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from bench.load.loads import LOADS, Load
from bench.load.running import TIMEOUT_SECONDS, CannotBegin, Effort, main_loop, probe, run_load
from bench.load.showing import summary, telling
from bench.load.tally import Tally
from bench.load.wire import BadUrl, Target

try:
    from uvloop import EventLoopPolicy
except ImportError:  # a client without it takes more of the cores that it measures
    from asyncio import DefaultEventLoopPolicy as EventLoopPolicy

DEFAULT_URL = "http://127.0.0.1:8080"
KEY_VARIABLE = "TIDEMILL_API_KEY"
NAMESPACE_VARIABLE = "TIDEMILL_NAMESPACE"
CONNECTIONS_MAX = 1_000
UNEXPECTED, REFUSED, INTERRUPTED = 1, 2, 130


def main() -> int:
    """Exit codes: 0 as expected, 1 not so, 2 there is nothing to test, 130 interrupted."""
    chosen = _arguments()
    load, effort = _chosen(chosen)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    asyncio.set_event_loop_policy(EventLoopPolicy())
    try:
        target = Target.of(chosen.url, _headers(os.environ))
        tally = main_loop(_run(target, load, effort, console))
    except (BadUrl, CannotBegin) as error:
        print(error, file=sys.stderr)
        return REFUSED
    console.print(summary(tally))
    for complaint in tally.complaints():
        console.print(complaint, soft_wrap=True)
    if tally.end == "interrupted":
        return INTERRUPTED
    return UNEXPECTED if tally.complaints() else 0


async def _run(target: Target, load: Load, effort: Effort, console: Console) -> Tally:
    await probe(target)
    how = f"{effort.connections} connections{', in bulk' if effort.bulk else ''}"
    console.print(f"{load.name}: {load.count:,} {load.noun} for {target.url}, {how}")
    with telling(console) as tell:
        return await run_load(target, load, effort, tell)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("load", choices=LOADS)
    url = os.environ.get("API_URL") or DEFAULT_URL
    parser.add_argument("--url", default=url, help=f"of the server; API_URL, else {DEFAULT_URL}")
    parser.add_argument("--count", type=_positive, help="how many items to submit")
    parser.add_argument("--connections", type=_positive, help="at once, to submit over")
    bulk = argparse.BooleanOptionalAction
    parser.add_argument("--bulk", action=bulk, help="1,000 items a request, or one by one")
    help_text = "seconds for the whole, then it ends with what there is"
    parser.add_argument("--timeout", type=_positive, default=TIMEOUT_SECONDS, help=help_text)
    return parser.parse_args()


def _chosen(chosen: argparse.Namespace) -> tuple[Load, Effort]:
    load = LOADS[chosen.load]
    if chosen.bulk is not None:
        load = replace(load, bulk=chosen.bulk)
    if chosen.count is not None:
        load = replace(load, count=chosen.count)
    effort = replace(Effort.usual(load), timeout=float(chosen.timeout))
    if chosen.connections is not None:
        effort = replace(effort, connections=min(chosen.connections, CONNECTIONS_MAX))
    return load, effort


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    """What is shown to the server; an API key never leaves this table."""
    headers = dict[str, str]()
    if key := environ.get(KEY_VARIABLE):
        headers["Authorization"] = f"Bearer {key}"
    if namespace := environ.get(NAMESPACE_VARIABLE):
        headers["Tidemill-Namespace"] = namespace
    return headers


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
