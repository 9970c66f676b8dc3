"""`submit`: single jobs over HTTP, each answered after its commit; nobody runs them."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.results import Sample
from bench.stage import Stage
from tests.deployment import Deployment
from tests.posting import Posting, post_of

CONNECTIONS = 200
POSTS = 30_000
POSTS_QUICK = 6_000
BODY = b'{"type":"default","payload":{"n":1}}'


async def measure_submit(stage: Stage) -> list[Sample]:
    """Submissions per second over 200 connections, client and database on the same cores."""
    count = POSTS_QUICK if stage.quick else POSTS
    stage.settings |= {"connections": CONNECTIONS, "posts": count, "auth": "single-user"}
    rates = list[float]()
    async with _api(stage) as (host, port):
        address = f"{host}:{port}"
        request = post_of("/v1/jobs", address, BODY)
        await _post(host, port, request, 2_000)
        for _ in range(stage.repeats):
            rates.append(await _post(host, port, request, count))
            stage.say(f"{rates[-1]:,.0f} submissions per second")
    return [Sample("submits_per_second", "1/s", rates)]


async def _post(host: str, port: int, request: bytes, count: int) -> float:
    posting = Posting(host, port, lambda _: request)
    begin = time.perf_counter()
    tally = await posting.run(count, CONNECTIONS)
    seconds = time.perf_counter() - begin
    if tally.statuses != {201: count}:
        raise RuntimeError(f"not every job was taken: {tally.statuses}, {tally.lost} lost")
    return count / seconds


@asynccontextmanager
async def _api(stage: Stage) -> AsyncIterator[tuple[str, int]]:
    async with stage.fresh_store() as (address, settings):
        assert address.dsn is not None
        stage.settings |= settings
        with (
            tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
            Deployment(Path(name), address.dsn, address.dsn) as roles,
        ):
            roles.migrate()
            roles.add_api().start()
            await asyncio.to_thread(roles.until_listening, roles.api_addresses[0])
            host, _, port = roles.api_addresses[0].partition(":")
            yield host, int(port)
