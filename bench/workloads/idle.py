"""`idle`: what roles at rest ask of PostgreSQL: one scheduler with two workers, and one notifier.

Counted on the wire, for each role apart, with everything that it sends: statements, and beside
them the begins and ends of transactions.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from bench.apart import Apart
from bench.results import Sample
from bench.shapes import job
from bench.stage import Stage
from bench.statement_counter import StatementCounter, counted
from tests.deployment import Deployment

WORKERS = 2
SETTLE_SECONDS = 5.0
SECONDS = 20.0
SECONDS_QUICK = 5.0


async def measure_idle(stage: Stage) -> list[Sample]:
    """Queries and transaction control per second, of an idle scheduler and of an idle notifier."""
    seconds = SECONDS_QUICK if stage.quick else SECONDS
    stage.settings |= {"workers": WORKERS, "schedulers": 1, "seconds": seconds}
    async with stage.fresh_store() as (address, settings), AsyncExitStack() as stack:
        assert address.dsn is not None
        stage.settings |= settings | {"bus": "postgresql"}
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tidemill-bench-"))
        scheduler, scheduler_dsn = await stack.enter_async_context(_counted(address.dsn, folder))
        notifier, notifier_dsn = await stack.enter_async_context(_counted(address.dsn, folder))
        roles = stack.enter_context(Deployment(Path(folder), address.dsn, address.dsn))
        await _start(roles, scheduler_dsn, notifier_dsn)
        return await _measure(stage, scheduler, notifier, seconds)


def _counted(dsn: str, folder: str) -> AbstractAsyncContextManager[tuple[StatementCounter, str]]:
    return counted(dsn, Path(tempfile.mkdtemp(dir=folder)))


async def _start(roles: Deployment, scheduler_dsn: str, notifier_dsn: str) -> None:
    roles.migrate()
    apart = Apart(roles, roles.folder)
    try:
        roles.store = roles.bus = scheduler_dsn
        roles.add_scheduler().start()
        await apart.until_listening(roles.schedulers[0])
        roles.store = roles.bus = notifier_dsn
        roles.add_notifier().start()
        for _ in range(WORKERS):
            roles.add_worker().start()
        for worker in roles.workers:
            await apart.until_connected(worker)
        await apart.begin(job(), 10)
        await apart.all_ended()
    finally:
        await apart.close()
    await asyncio.sleep(SETTLE_SECONDS)


async def _measure(
    stage: Stage, scheduler: StatementCounter, notifier: StatementCounter, seconds: float
) -> list[Sample]:
    figures: dict[str, list[float]] = {}
    for _ in range(stage.repeats):
        for counter in (scheduler, notifier):
            counter.queries = counter.control = 0
        await asyncio.sleep(seconds)
        for name, counter in (("scheduler", scheduler), ("notifier", notifier)):
            figures.setdefault(f"{name}_queries", []).append(counter.queries / seconds)
            figures.setdefault(f"{name}_control", []).append(counter.control / seconds)
        stage.say(", ".join(f"{name} {values[-1]:.1f}/s" for name, values in figures.items()))
    return [Sample(f"{name}_per_second", "1/s", values) for name, values in figures.items()]
