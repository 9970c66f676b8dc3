"""The command: `python -m tests.chaos --minutes 30 --seed 1 --report FILE`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from tests.chaos.campaign import run_campaign
from tests.chaos.faults import HASTY_LINES, LINES
from tests.chaos.report import LONG_MINUTES, RATE_MIN, Report
from tests.chaos.stage import Campaign

HASTY_MINUTES = 3.0
"""Below this, faults come faster, so that each kind comes at all."""

SLOTS, OPEN = 16, 400
SLOTS_VIA_BROKER, OPEN_VIA_BROKER = 200, 2_000
"""What a killed member of a group had in hand is held up for seconds: more must be on its way."""


def main() -> int:
    """Run one campaign; 1 when it has failed."""
    chosen = _arguments()
    campaign = Campaign(
        seconds=chosen.minutes * 60,
        seed=chosen.seed,
        bus=chosen.bus or chosen.via or "redis",
        via=chosen.via,
        schedulers=chosen.schedulers,
        workers=chosen.workers,
        slots=chosen.slots or (SLOTS_VIA_BROKER if chosen.via else SLOTS),
        open_runs=chosen.open or (OPEN_VIA_BROKER if chosen.via else OPEN),
        rate_min=RATE_MIN if chosen.rate is None else chosen.rate,
        lines=HASTY_LINES if chosen.minutes < HASTY_MINUTES else LINES,
        keep=chosen.keep and chosen.keep.absolute(),
    )
    report = asyncio.run(run_campaign(campaign))
    report.save(chosen.report)
    _tell(report, chosen.report)
    return 0 if report.verdict == "passed" else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    add = parser.add_argument
    add("--minutes", type=float, default=30.0, help=f"long runs have at least {LONG_MINUTES:g}")
    add("--seed", type=int, default=1)
    add("--bus", choices=["kafka", "redis", "postgresql"], help="redis, or the broker of --via")
    add("--via", choices=["kafka", "redis"], help="workers talk over a broker, not over gRPC")
    add("--schedulers", type=int, default=2)
    add("--workers", type=int, default=3)
    add("--slots", type=int, help=f"of each worker: {SLOTS}, with --via {SLOTS_VIA_BROKER}")
    add("--open", type=int, help=f"runs to keep open: {OPEN}, with --via {OPEN_VIA_BROKER}")
    add("--rate", type=float, help=f"workflows a minute that are asked for: {RATE_MIN:g}")
    add("--report", type=Path, default=Path("build/chaos.json"), metavar="FILE")
    add("--keep", type=Path, metavar="FOLDER", help="where logs and marks stay")
    return parser.parse_args()


def _tell(report: Report, path: Path) -> None:
    print(
        f"{report.verdict}: {report.workflows_finished} workflows in {report.minutes:g} min, "
        f"{report.workflows_per_minute:.0f} a minute; {sum(report.faults.values())} faults; "
        f"{report.lost_runs} lost runs, {report.double_outcomes} double outcomes; "
        f"{report.longest_seconds_without_commit:g} s without a commit at most; "
        f"drained in {report.drain_seconds:g} s; written to {path}"
    )
    for failure in report.failures:
        print(f"  {failure}")


if __name__ == "__main__":
    sys.exit(main())
