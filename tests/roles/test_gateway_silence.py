"""A network that drops packets and tells nobody: both sides notice within the silence bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from tests.roles.gateway_stage import a_mill, a_stranger
from tests.roles.test_worker_grpc import a_gateway
from tests.roles.worker_stage import Doing
from tidemill.domain.workflow import TaskSpec
from tidemill.protocol.messages import Holdings, Ping, Welcome
from tidemill.runtime.conformance.proxy import Proxy
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Call
from tidemill.worker.grpc_link import GrpcLink
from tidemill.worker.worker import Worker

LATE_SECONDS = 7.0  # what a busy machine may add


async def seconds_until(look: Callable[[], bool]) -> float:
    begun = time.monotonic()
    for _ in range(2_000):
        if look():
            return time.monotonic() - begun
        await asyncio.sleep(0.01)
    raise AssertionError("it was not seen within 20 s")


async def test_the_scheduler_notices_a_worker_that_was_cut_off() -> None:
    async with a_mill() as mill, Proxy(mill.address) as proxy:
        mill.address = proxy.address
        async with a_stranger(mill) as stranger:
            await stranger.hear(Welcome)
            pinging = asyncio.create_task(_ping(stranger))
            await asyncio.sleep(1)
            proxy.freeze()

            noticed = await seconds_until(lambda: mill.sessions() == 0)
            pinging.cancel()

    assert 1 < noticed < 3 + LATE_SECONDS


async def test_the_scheduler_notices_it_even_while_it_is_stuck_in_a_write() -> None:
    params = {"text": "x" * 1_000_000}
    large = [TaskSpec(id=f"t{number}", executor="do", params=params) for number in range(24)]
    async with a_mill() as mill, Proxy(mill.address) as proxy:
        mill.address = proxy.address
        async with a_stranger(mill, slots=0) as stranger:
            await stranger.hear(Welcome)
            await mill.start(*large)
            await stranger.say(Holdings(held=(), slots=100))
            await seconds_until(lambda: bool(mill.scheduler.desk.sessions.all()[0].granted))
            proxy.freeze()

            noticed = await seconds_until(lambda: mill.sessions() == 0)

    assert noticed < 3 + LATE_SECONDS


async def test_a_worker_notices_a_scheduler_that_was_cut_off() -> None:
    async def nothing(call: Call) -> None:
        """Never asked."""

    async with a_gateway("127.0.0.1:0") as (door, server), Proxy(server.address) as proxy:
        config = WorkerConfig(name="w1", slots=1)
        links = [GrpcLink(proxy.address)]
        worker = Worker(config, links, {"do": Doing(nothing)}, SystemClock(), SystemEntropy())
        running = asyncio.create_task(worker.run())
        stream = await door.next_stream()
        stream.welcome()
        await stream.hear(Ping)
        proxy.freeze()
        begun = time.monotonic()

        again = await asyncio.wait_for(door.streams.get(), 20)
        noticed = time.monotonic() - begun
        hello = await again.hello()
        running.cancel()
        await asyncio.wait([running])

    assert (hello.session, 2 < noticed < 3 + LATE_SECONDS) == ("s1", True)


async def _ping(stranger: Any) -> None:
    while True:
        await stranger.say(Ping())
        await asyncio.sleep(0.5)
