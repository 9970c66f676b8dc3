"""One campaign: roles begin, load flows, faults come, all drains, and everything is checked."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from tests.chaos.checks import check_all
from tests.chaos.evidence import Evidence, gather
from tests.chaos.nemesis import Nemesis
from tests.chaos.report import Report, find_complaints
from tests.chaos.stage import LOOK_SECONDS, Campaign, Stage
from tests.chaos.tail import kafka_tail, redis_tail
from tests.deployment import Deployment, RoleProcess
from tests.servers import KafkaServer
from tests.simulation.fold import ENDINGS, RUN_ENDINGS
from tests.simulation.violation import Violation
from tidemill.runtime.wiring import open_bus

BEGIN_SECONDS_MAX = 60.0
DRAIN_SECONDS_MAX = 120.0
CATCH_UP_SECONDS_MAX = 60.0
MINUTE = 60_000_000
SOME = range(1, 2**31)
NONE = range(1)
ENDED_RUNS = "SELECT count(*) FROM run WHERE ended_at IS NOT NULL"
OPEN_RUNS = "SELECT count(*) FROM run WHERE ended_at IS NULL"
UNTOLD = """
    SELECT (SELECT count(*) FROM outbox WHERE position IS NULL)
         + (SELECT coalesce(max(position), 0) FROM outbox)
         - (SELECT coalesce(max(position), 0) FROM outbox_cursor WHERE name = 'bus')
"""


class Times(NamedTuple):
    """When the faults began and ended, by the wall clock, and how long draining took."""

    begin: float
    end: float
    drain_seconds: float


async def run_campaign(campaign: Campaign) -> Report:
    """Do all of it, and judge."""
    folder = campaign.keep or Path(tempfile.mkdtemp(prefix="tidemill-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    stage = Stage(campaign, folder)
    try:
        for server in stage.servers.values():
            server.start()
        with stage.deployment() as roles:
            report = await _run(stage, roles)
    finally:
        for server in stage.servers.values():
            server.close()
        if campaign.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    report.judge(rate_min=campaign.rate_min)
    return report


async def _run(stage: Stage, roles: Deployment) -> Report:
    campaign = stage.campaign
    roles.migrate()
    load = stage.load()
    nemesis = Nemesis(roles, stage.servers, load)
    async with _listening(stage):
        try:
            roles.start()
            load.start()
            await stage.until(ENDED_RUNS, SOME, BEGIN_SECONDS_MAX)
            begin = time.time()
            await nemesis.run(campaign.script())
            end = time.time()
            drain_seconds = await _drain(stage, nemesis, load)
        finally:
            load.kill()
    times = Times(begin, end, drain_seconds)
    evidence = await gather(stage.postgres.url, stage.accepted, stage.marks, (begin, end))
    violations = check_all(evidence)
    violations += stage.listener.check(evidence.event_ids, complete=stage.keeps_events)
    return _report(stage, nemesis, evidence, violations, times)


@contextlib.asynccontextmanager
async def _listening(stage: Stage) -> AsyncIterator[None]:
    """Listen to the bus meanwhile."""
    listening = asyncio.create_task(_listen(stage))
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.wait([listening])


async def _listen(stage: Stage) -> None:
    broker = stage.servers.get("broker")
    if stage.campaign.bus == "postgresql":
        bus = open_bus(stage.bus_url)
        try:
            await stage.listener.follow(bus)
        finally:
            await bus.close()
    elif isinstance(broker, KafkaServer):
        await stage.listener.read(kafka_tail(broker.address))
    else:
        await stage.listener.read(redis_tail(stage.bus_url))


async def _drain(stage: Stage, nemesis: Nemesis, load: RoleProcess) -> float:
    """No more faults and no more load: everything ends, in bounded time. Returns that time."""
    watching = asyncio.create_task(nemesis.watch())
    load.terminate()
    seconds = await stage.until(OPEN_RUNS, NONE, DRAIN_SECONDS_MAX)
    nemesis.unexpected += [f"the load ended with {status}" for status in {load.wait()} - {0}]
    await stage.until(OPEN_RUNS, NONE, DRAIN_SECONDS_MAX - seconds)
    await stage.until(UNTOLD, NONE, CATCH_UP_SECONDS_MAX)
    if stage.keeps_events:
        await _catch_up(stage)
    watching.cancel()
    await asyncio.wait([watching])
    await nemesis.stop_all()
    return seconds


async def _catch_up(stage: Stage) -> None:
    """Wait for the listener to have heard everything."""
    deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
    facts = await stage.count_facts()
    while stage.listener.distinct < facts and time.monotonic() < deadline:  # noqa: ASYNC110 - nobody signals this
        await asyncio.sleep(LOOK_SECONDS)


def _report(
    stage: Stage, nemesis: Nemesis, evidence: Evidence, violations: list[Violation], times: Times
) -> Report:
    campaign, roles = stage.campaign, nemesis.deployment
    minutes = (times.end - times.begin) / 60
    per_minute = _per_minute(evidence, times)
    finished = sum(per_minute)
    counts = Counter(violation.invariant for violation in violations)
    return Report(
        settings=campaign.settings(),
        seed=campaign.seed,
        minutes=round(minutes, 2),
        faults=dict(sorted(nemesis.fired.items())),
        faults_expected=campaign.fault_names(),
        workflows_finished=finished,
        workflows_per_minute=round(finished / minutes, 1),
        per_minute=per_minute,
        tasks_finished=sum(task.state in ENDINGS for task in evidence.tasks.values()),
        runs=dict(Counter(run.state for run in evidence.runs.values())),
        runs_by_shape=dict(Counter(run.workflow for run in evidence.runs.values())),
        longest_seconds_without_commit=round(evidence.longest_gap, 2),
        drain_seconds=round(times.drain_seconds, 2),
        accepted=len(evidence.accepted),
        lost_runs=counts["I2"],
        double_outcomes=counts["I1"],
        double_executions=sum(count > 1 for count in evidence.marks.values()),
        attempts_by_ending=dict(_attempts(evidence)),
        executions=sum(evidence.marks.values()),
        submitted_twice=evidence.twice,
        events=stage.listener.summary(evidence.event_ids),
        process_starts={process.name: process.starts for process in roles.processes},
        unexpected_ends=nemesis.unexpected,
        complaints=find_complaints(roles.logs()),
        violations=[str(violation) for violation in violations],
    )


def _per_minute(evidence: Evidence, times: Times) -> list[int]:
    """Runs that ended, for each minute of the faults."""
    begin, end = (round(moment * 1_000_000) for moment in times[:2])
    minutes = [0] * ((end - begin) // MINUTE + 1)
    for run in evidence.runs.values():
        if run.state in RUN_ENDINGS and begin <= (run.ended_at or 0) < end:
            minutes[((run.ended_at or 0) - begin) // MINUTE] += 1
    return minutes


def _attempts(evidence: Evidence) -> Counter[str]:
    """How attempts ended: those that another one followed, and the last ones."""
    last = Counter(task.state.lower() for task in evidence.tasks.values() if task.epoch)
    return evidence.attempts + last
