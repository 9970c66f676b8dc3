"""The simulator itself: time, deaths, pauses, the database and the network behave as promised."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from tests.simulation.chance import Chance
from tests.simulation.database import Database, drive
from tests.simulation.faulty_store import NodeStore
from tests.simulation.journal import Journal
from tests.simulation.loop import SimLoop, Stuck
from tests.simulation.network import Network, SimLink
from tests.simulation.nodes import Node, NodeClock
from tidemill.domain.errors import Unavailable
from tidemill.protocol.messages import Ping
from tidemill.stores.sqlite.store import SqliteStore


def a_loop(seed: int = 1) -> SimLoop:
    return SimLoop(Random(seed), seconds_max=1_000, steps_max=10_000)


def run(loop: SimLoop, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return loop.run_until_complete(work)
    finally:
        loop.abandon()


def a_database(loop: SimLoop) -> Database:
    chance = Chance(1)
    chance.faults_on = False
    store = SqliteStore(":memory:", NodeClock(loop), threads=False)
    drive(store.migrate())
    return Database(store, loop, chance, Journal(loop))


def test_waiting_an_hour_takes_no_time() -> None:
    loop = a_loop()

    async def wait() -> float:
        await asyncio.sleep(900)
        return loop.time()

    assert run(loop, wait()) == 900


def test_a_world_in_which_nothing_can_happen_any_more_is_reported() -> None:
    loop = a_loop()

    async def wait() -> None:
        await loop.create_future()

    with pytest.raises(Stuck, match="deadlock"):
        run(loop, wait())


def test_the_seed_decides_the_order_of_what_is_ready() -> None:
    def order(seed: int) -> list[int]:
        loop, seen = a_loop(seed), []

        async def note(number: int) -> None:
            seen.append(number)

        async def all_at_once() -> None:
            await asyncio.gather(*(note(number) for number in range(8)))

        run(loop, all_at_once())
        return seen

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_a_killed_node_runs_nothing_more_not_even_a_finally() -> None:
    loop, seen = a_loop(), []
    node = Node(loop, "victim")

    async def live() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            seen.append("finally")

    async def kill() -> list[str]:
        node.spawn(live())
        await asyncio.sleep(1)
        node.kill()
        await asyncio.sleep(60)
        return list(seen)

    assert run(loop, kill()) == []


def test_a_paused_node_wakes_up_late() -> None:
    loop, seen = a_loop(), []
    node = Node(loop, "sleeper")

    async def live() -> None:
        await asyncio.sleep(1)
        seen.append(loop.time())

    async def pause() -> list[float]:
        node.spawn(live())
        await asyncio.sleep(0.5)
        node.pause()
        await asyncio.sleep(20)
        node.resume()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return seen

    assert run(loop, pause()) == [20.5]


def test_nobody_reads_what_is_not_committed() -> None:
    loop = a_loop()
    database = a_database(loop)
    writer, reader = (NodeStore(database, Node(loop, name)) for name in ("writer", "reader"))

    async def write_slowly() -> None:
        async with writer.transaction() as tx:
            await tx.outbox.append(b"[]")
            await asyncio.sleep(2)

    async def read() -> float:
        loop.create_task(write_slowly())
        await asyncio.sleep(1)
        await reader.watch.ready_lanes()
        return loop.time()

    assert run(loop, read()) > 2


def test_a_node_killed_in_a_transaction_leaves_nothing_and_locks_nobody_out() -> None:
    loop = a_loop()
    database = a_database(loop)
    node = Node(loop, "victim")
    victim, other = NodeStore(database, node), NodeStore(database, Node(loop, "other"))

    async def write_forever() -> None:
        async with victim.transaction() as tx:
            await tx.outbox.append(b"[]")
            await asyncio.sleep(1_000)

    async def kill_and_read() -> int:
        node.spawn(write_forever())
        await asyncio.sleep(1)
        node.kill()
        async with other.transaction() as tx:
            return await tx.outbox.stamp(10)

    assert run(loop, kill_and_read()) == 0


def test_a_node_that_sleeps_in_a_transaction_loses_it() -> None:
    loop = a_loop()
    database = a_database(loop)
    node = Node(loop, "sleeper")
    store = NodeStore(database, node)

    async def write() -> None:
        async with store.transaction() as tx:
            await tx.outbox.append(b"[]")
            await asyncio.sleep(1)

    async def pause() -> BaseException | None:
        task = node.spawn(write())
        await asyncio.sleep(0.5)
        node.pause()
        await asyncio.sleep(10)
        node.resume()
        await asyncio.wait([task])
        return task.exception()

    assert isinstance(run(loop, pause()), Unavailable)


def test_messages_arrive_in_order_until_the_connection_breaks() -> None:
    loop = a_loop()
    chance = Chance(1)
    chance.faults_on = False
    network = Network(loop, chance, Journal(loop))
    worker, scheduler = Node(loop, "worker"), Node(loop, "scheduler")

    class Door:
        async def attach(self, incoming: Any) -> Any:
            async for message in incoming:
                yield message

    async def outgoing() -> Any:
        for _ in range(3):
            yield Ping()
        await loop.create_future()

    async def talk() -> int:
        network.doors["scheduler"] = (scheduler, Door())
        heard = 0
        async for _ in SimLink(network, worker).open(outgoing()):
            heard += 1
            if heard == 3:
                network.connections[0].snap()
        return heard

    assert run(loop, talk()) == 3
