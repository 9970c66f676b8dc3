"""Ways to submit jobs, and how many of them a second are answered after their commit."""

from __future__ import annotations

import time

from bench.api_process import running_api
from bench.shapes import NOTHING, jobs
from bench.stage import Stage
from tests.posting import Posting, post_of
from tidemill.buses.memory import MemoryBus
from tidemill.engine.runs import Started
from tidemill.engine.submissions import Submissions
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import open_store

JOB = b'{"type":"%b","payload":{"n":1}}' % NOTHING.encode()
WARM_UP = 2_000


async def rates_of_posts(stage: Stage, count: int, connections: int, jobs_each: int) -> list[float]:
    """Jobs per second over HTTP; more than one in a request is a bulk."""
    path = "/v1/jobs" if jobs_each == 1 else "/v1/jobs:bulk"
    body = JOB if jobs_each == 1 else b"[" + b",".join([JOB] * jobs_each) + b"]"
    requests = count // jobs_each
    rates = list[float]()
    async with running_api(stage) as (host, port):
        post = post_of(path, f"{host}:{port}", body)
        await _post(host, port, post, max(connections, WARM_UP // jobs_each), connections)
        for _ in range(stage.repeats):
            seconds = await _post(host, port, post, requests, connections)
            rates.append(requests * jobs_each / seconds)
            stage.say(f"{rates[-1]:,.0f} submissions per second, {jobs_each:,} in a request")
    return rates


async def rates_of_library(stage: Stage, count: int) -> list[float]:
    """Jobs per second of a process that submits to the store itself, in one call for all."""
    rates = list[float]()
    async with stage.fresh_store() as (address, settings):
        stage.settings |= settings
        store = await open_store(address, SystemClock())
        bus = MemoryBus()
        submissions = Submissions(store, bus, SystemEntropy())
        try:
            await store.migrate()
            await submissions.submit_many(jobs(WARM_UP))
            for _ in range(stage.repeats):
                rates.append(await _submit(submissions, count))
                stage.say(f"{rates[-1]:,.0f} submissions per second by the library")
        finally:
            await submissions.close()
            await bus.close()
            await store.close()
    return rates


async def _submit(submissions: Submissions, count: int) -> float:
    begin = time.perf_counter()
    outcomes = await submissions.submit_many(jobs(count))
    seconds = time.perf_counter() - begin
    if not all(isinstance(outcome, Started) and outcome.created for outcome in outcomes):
        raise RuntimeError("not every job was taken")
    return count / seconds


async def _post(host: str, port: int, request: bytes, count: int, connections: int) -> float:
    posting = Posting(host, port, lambda _: request)
    begin = time.perf_counter()
    tally = await posting.run(count, connections)
    seconds = time.perf_counter() - begin
    if tally.lost or sum(tally.statuses.values()) != count or max(tally.statuses) >= 300:
        raise RuntimeError(f"not every job was taken: {tally.statuses}, {tally.lost} lost")
    return seconds
