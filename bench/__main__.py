"""Runs workloads one after the other, merges their rows into one file, and shows them.

Without options: every workload on both stores, without a broker and without peers. Rows of
workloads that do not run stay in the file as they were.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from bench.machine import describe_machine
from bench.measuring import Choice, Measuring
from bench.page import write_page
from bench.peers import PEERS
from bench.results import (
    BusName,
    Report,
    Row,
    StoreName,
    load_report,
    read_report,
    same_machine,
    save_report,
)
from bench.stage import Peer, Workload
from bench.table import draw_table
from bench.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "results.json"
RESULTS_QUICK = RESULTS.with_name("quick.json")
PAGE = ROOT / "docs" / "benchmarks.md"
STORES: tuple[StoreName, ...] = ("sqlite", "postgresql")
BUSES: tuple[BusName, ...] = ("none", "kafka", "redis")
REPEATS, REPEATS_QUICK = 5, 3
EXAMPLES = """\
examples:
  bench/run.py --quick                                  everything, small, within ten minutes
  bench/run.py --only limit jobs chain3 --store postgresql
  bench/run.py --only jobs chain3 hop --bus kafka redis
  bench/run.py --only jobs hop --peers dbos celery      peers beside our own figures
  bench/run.py --only --page                            write the page from what was measured
"""

# A file or a pipe has no width, and a table that is cut off is of no use there.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 150)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure; the status tells whether everything could be measured."""
    chosen = parse(arguments)
    path: Path = chosen.json or (RESULTS_QUICK if chosen.quick else RESULTS)
    failed = _measure(choice_of(chosen), path)
    if chosen.page:
        write_page(read_report(path) or Report(machine=describe_machine()), PAGE)
        console.print(f"written to {PAGE.relative_to(ROOT)}")
    if failed:
        console.print(f"[red]not measured: {', '.join(failed)}[/]")
    return 1 if failed else 0


def _measure(choice: Choice, path: Path) -> list[str]:
    """Save after each workload: a long go that is broken off leaves what it has."""
    machine = describe_machine()
    _put_aside(path, machine)
    rows, begin = list[Row](), time.perf_counter()
    with ExitStack() as servers:
        measuring = Measuring(choice, servers, _say)
        for results in measuring.results():
            rows += results
            save_report(path, load_report(path, machine).merged(results))
        for peers in measuring.peers():
            rows += peers
            save_report(path, load_report(path, machine).merged(peers=peers))
    if rows:
        console.print(draw_table(rows))
        minutes = (time.perf_counter() - begin) / 60
        console.print(f"written to {path} after {minutes:.1f} minutes")
    return measuring.failed


def _put_aside(path: Path, machine: dict[str, Any]) -> None:
    """Rows of another machine do not mix with ours, and are not lost either."""
    stored = read_report(path)
    if stored is not None and not same_machine(stored.machine, machine):
        kept = path.with_suffix(".earlier.json")
        path.rename(kept)
        console.print(f"{path} is of another machine: it is now {kept}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; None for that of this process."""
    parser = argparse.ArgumentParser(
        prog="bench/run.py",
        description=__doc__,
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--only", nargs="*", choices=_names(WORKLOADS), metavar="WORKLOAD", help="these and no more"
    )
    add(
        "--store",
        nargs="+",
        choices=STORES,
        default=STORES,
        metavar="STORE",
        help="sqlite, postgresql",
    )
    add(
        "--bus",
        nargs="+",
        choices=BUSES,
        default=["none"],
        metavar="BUS",
        help="none, kafka, redis",
    )
    add("--peers", nargs="*", choices=_names(PEERS), metavar="PEER", help="all, or these")
    add(
        "--repeats",
        type=int,
        metavar="N",
        help=f"of each figure; {REPEATS}, {REPEATS_QUICK} if quick",
    )
    add("--quick", action="store_true", help="smaller runs, within ten minutes")
    add("--json", type=Path, metavar="FILE", help="rows are merged into this file")
    add("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)} and its plots too")
    return parser.parse_args(arguments)


def _epilog() -> str:
    lines = []
    for title, names in (("workloads", _names(WORKLOADS)), ("peers", _names(PEERS))):
        lines += textwrap.wrap(f"{title}: {', '.join(names)}", 96, subsequent_indent="  ")
    return "\n".join([*lines, "", EXAMPLES])


def choice_of(chosen: argparse.Namespace) -> Choice:
    """What to measure."""
    return Choice(
        workloads=[one for one in WORKLOADS if _wanted(one, chosen)],
        peers=[one for one in PEERS if _asked(one.name, chosen.peers)],
        stores=chosen.store,
        buses=chosen.bus,
        repeats=chosen.repeats or (REPEATS_QUICK if chosen.quick else REPEATS),
        quick=chosen.quick,
    )


def _wanted(workload: Workload, chosen: argparse.Namespace) -> bool:
    if chosen.only is None:
        return workload.in_quick or not chosen.quick
    return workload.name in chosen.only


def _asked(name: str, peers: Sequence[str] | None) -> bool:
    return peers is not None and (not peers or name in peers)


def _names(things: Sequence[Workload] | Sequence[Peer]) -> list[str]:
    return [one.name for one in things]


def _say(name: str, where: str, text: str) -> None:
    console.print(f"[bold]{name:10}[/] [dim]{where:16}[/] {escape(text)}", soft_wrap=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; what was measured before is in the file")
