"""Several schedulers as endpoints: one is killed, and its workers take their attempts along."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tidemill.buses.memory import MemoryBus
from tidemill.domain.facts import Fact, FactType, decode_facts
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.run import Run, RunState
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import TaskSpec, Workflow
from tidemill.engine import runs
from tidemill.gateway.server import GatewayServer
from tidemill.runtime.conformance.proxy import Proxy
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.service import Scheduler
from tidemill.stores.postgres.store import PostgresStore

_schemas = count(1)
MOVE_SECONDS_MAX = 5.0


@dataclass
class Node:
    """A scheduler with a store of its own, behind a network that dies with it."""

    scheduler: Scheduler
    network: Proxy
    life: AsyncExitStack
    duties: asyncio.Task[None]

    async def kill(self) -> None:
        """As kill -9 does: no word to anyone, connections reset, the address refuses."""
        self.duties.cancel()
        self.network.cut()
        await self.life.aclose()


@dataclass
class Mill:
    """Two schedulers on one database, and a third connection to look at it."""

    store: PostgresStore
    nodes: list[Node] = field(default_factory=list)

    @property
    def addresses(self) -> list[str]:
        return [node.network.address for node in self.nodes]

    async def host(self, but: Node | None = None) -> Node:
        """The scheduler that has a worker."""
        for _ in range(2_000):
            for node in self.nodes:
                if node is not but and len(node.scheduler.desk.sessions):
                    return node
            await asyncio.sleep(0.01)
        raise AssertionError("no worker has come")

    async def begun(self, run_id: RunId, positions: int) -> None:
        """Wait until so many tasks have written something: their worker has them for sure."""
        for position in range(positions):
            for _ in range(1_000):
                if await self.store.reader.logs("default", TaskKey(run_id, position)):
                    break
                await asyncio.sleep(0.02)

    async def ended(self, run_id: RunId) -> Run:
        for _ in range(1_500):
            run = await self.store.reader.run("default", run_id)
            if run.ended_at is not None:
                return run
            await asyncio.sleep(0.02)
        raise AssertionError("the run has not ended")

    async def facts(self) -> list[Fact]:
        async with self.store.transaction() as tx:
            await tx.outbox.stamp(10_000)
            rows = await tx.outbox.read(0, 10_000)
        return [fact for row in rows for fact in decode_facts(row.facts)]


@pytest.fixture
async def mill(postgres_dsn: str) -> AsyncIterator[Mill]:
    schema = f"moves_{os.getpid()}_{next(_schemas)}"
    store = PostgresStore(postgres_dsn, schema=schema)
    await store.migrate()
    mill = Mill(store)
    for name in ("one", "two"):
        mill.nodes.append(await a_node(name, PostgresStore(postgres_dsn, schema=schema)))
    yield mill
    for node in mill.nodes:
        node.duties.cancel()
        await node.life.aclose()
    await store.close()


async def a_node(name: str, store: PostgresStore) -> Node:
    scheduler = Scheduler(
        name=name,
        store=store,
        bus=MemoryBus(),  # one each: not even hints reach the other
        clock=SystemClock(),
        entropy=SystemEntropy(),
        config=SchedulerConfig(),
    )
    life = AsyncExitStack()
    life.push_async_callback(store.close)
    duties = asyncio.create_task(scheduler.run())
    life.push_async_callback(asyncio.wait, [duties])
    gateway = GatewayServer(scheduler, "127.0.0.1:0")
    await gateway.start()
    life.push_async_callback(gateway.stop, 0)
    network = await life.enter_async_context(Proxy(gateway.address))
    return Node(scheduler, network, life, duties)


@asynccontextmanager
async def a_worker(addresses: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    options = [text for address in addresses for text in ("--connect", address)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidemill.cli", "worker", "--slots", "8", *options),
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.alone
async def test_a_worker_takes_its_running_attempts_to_another_scheduler(mill: Mill) -> None:
    sleeps = [a_script(f"t{number}", "print('begun'); time.sleep(5)") for number in range(4)]
    async with a_worker(mill.addresses):
        first = await mill.host()
        request = runs.StartRequest(workflow=Workflow(name="w", tasks=tuple(sleeps)))
        (started,) = await runs.start(mill.store, MemoryBus(), SystemEntropy(), [request])
        await mill.begun(started.run_id, 4)

        await first.kill()
        begun = time.monotonic()
        second = await mill.host(but=first)
        moved = time.monotonic() - begun
        run = await mill.ended(started.run_id)

    assert (second is not first, moved < MOVE_SECONDS_MAX) == (True, True)
    assert run.state is RunState.SUCCEEDED
    tasks = await mill.store.reader.tasks("default", run.id, -1, 10)
    assert {(task.epoch, task.failures, task.losses) for task in tasks} == {(1, 0, 0)}
    kinds = [fact.type for fact in await mill.facts()]
    assert kinds.count(FactType.TASK_STARTED) == 4
    assert kinds.count(FactType.TASK_COMPLETED) == 4


async def test_what_was_finished_while_nobody_listened_is_committed_once(
    mill: Mill, tmp_path: Path
) -> None:
    end = f"time.sleep(1); open({str(tmp_path / 'end')!r}, 'w')"
    async with a_worker(mill.addresses):
        first = await mill.host()
        task = a_script("t", f"print('begun'); {end}")
        request = runs.StartRequest(workflow=Workflow(name="w", tasks=(task,)))
        (started,) = await runs.start(mill.store, MemoryBus(), SystemEntropy(), [request])
        await mill.begun(started.run_id, 1)
        first.network.freeze()  # the outcome goes nowhere
        await until_there(tmp_path / "end")
        await first.kill()
        run = await mill.ended(started.run_id)

    (stored,) = await mill.store.reader.tasks("default", run.id, -1, 10)
    assert (stored.state, stored.epoch, stored.losses) == (TaskState.SUCCEEDED, 1, 0)
    kinds = [fact.type for fact in await mill.facts()]
    assert (kinds.count(FactType.TASK_STARTED), kinds.count(FactType.TASK_COMPLETED)) == (1, 1)


def a_script(name: str, code: str) -> TaskSpec:
    argv = [sys.executable, "-u", "-c", f"import time; {code}"]
    return TaskSpec(id=name, executor="shell", params={"argv": argv})


async def until_there(path: Path) -> None:
    is_there = path.exists
    for _ in range(1_000):
        if is_there():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the task has not ended")
