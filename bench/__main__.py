"""Runs workloads one after the other, merges their rows into one file, and shows them."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.machine import describe_machine, describe_surroundings
from bench.results import Result, StoreName, load_report, save_report, summarise
from bench.stage import Stage, Workload
from bench.stores import store_source
from bench.table import draw_table, write_page
from bench.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results" / "results.json"
RESULTS_QUICK = RESULTS.with_name("quick.json")
PAGE = ROOT / "docs" / "benchmarks.md"
STORES: tuple[StoreName, ...] = ("sqlite", "postgresql")

# A file or a pipe has no width, and a table that is cut off is of no use there.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def main() -> int:
    """Read the command line and measure."""
    chosen = _arguments()
    path: Path = chosen.json or (RESULTS_QUICK if chosen.quick else RESULTS)
    report = load_report(path, describe_machine())
    fresh: list[Result] = []
    for store in chosen.store:
        for result in _measure_store(store, chosen):
            fresh.append(result)
            report = report.merged([result])
            save_report(path, report)
    console.print(draw_table(fresh))
    console.print(f"written to {path}")
    if chosen.page:
        PAGE.write_text(write_page(report))
        console.print(f"written to {PAGE}")
    return 0


def _arguments() -> argparse.Namespace:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="WORKLOAD")
    parser.add_argument("--store", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--repeats", type=int, default=3, help="of each figure")
    parser.add_argument("--quick", action="store_true", help="smaller runs, within ten minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rows are merged into this file")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)} too")
    return parser.parse_args()


def _measure_store(store: StoreName, chosen: argparse.Namespace) -> Iterator[Result]:
    wanted = [one for one in WORKLOADS if one.name in chosen.only and store in one.stores]
    if not wanted:
        return
    with store_source(store) as fresh_store:
        for workload in wanted:
            stage = Stage(
                quick=chosen.quick,
                repeats=chosen.repeats,
                fresh_store=fresh_store,
                say=partial(_say, workload.name, store),
            )
            yield from _measure(workload, store, stage)


def _measure(workload: Workload, store: StoreName, stage: Stage) -> list[Result]:
    surroundings = describe_surroundings()
    begin = time.perf_counter()
    samples = asyncio.run(workload.measure(stage))
    stage.say(f"done in {time.perf_counter() - begin:.0f} s")
    return summarise(workload.name, store, samples, surroundings | stage.settings)


def _say(workload: str, store: StoreName, text: str) -> None:
    console.print(f"[bold]{workload:10}[/] [dim]{store:11}[/] {text}")


if __name__ == "__main__":
    sys.exit(main())
