"""Prefect: a server on SQLite, and flows that run in a process of their own."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from gauge import Figures, Order, read_order, running, wait_until

if len(sys.argv) > 2:  # the package reads its settings when it is imported
    from prefect import flow, task
    from prefect.task_runners import ThreadPoolTaskRunner

    THREADS = 10

    @task
    def look_at_clock(_: int) -> float:
        """A task that does nothing."""
        return time.time()

    @task
    async def pass_on(value: int) -> int:
        """A task with a small result."""
        return value + 1

    @flow(task_runner=ThreadPoolTaskRunner(max_workers=THREADS))
    def jobs(count: int) -> None:
        """Many tasks at once."""
        look_at_clock.map(range(count)).wait()

    @flow
    async def chain3() -> int:
        """Three tasks in a row."""
        return await pass_on(await pass_on(await pass_on(0)))

    @flow
    def hops(count: int) -> list[float]:
        """Many tasks in a row."""
        return [look_at_clock(number) for number in range(count)]


HOPS = 50
FLOWS_AT_ONCE = 10


def serve(order: Order) -> None:
    """Run the server, and beside it this file again as the process that runs flows."""
    port = _free_port()
    settings = _settings(order, port)
    command = ["-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with running([command], order.folder, settings) as servers:
        wait_until(lambda: _is_up(f"{settings['PREFECT_API_URL']}/health"), 0.2, servers)
        again = [sys.executable, __file__, sys.argv[1], str(servers[0].pid)]
        subprocess.run(again, env=os.environ | settings, check=True)


def _settings(order: Order, port: int) -> dict[str, str]:
    return {
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{order.folder}/prefect.db",
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_HOME": str(order.folder),
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_up(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def drive(order: Order, server: int) -> None:
    """Measure; an end is seen where the flow runs, before the server has heard of it."""
    figures = Figures(order)
    jobs(10)
    figures.add_weight([server, os.getpid()])
    tasks, flows = order.size(500, 100), order.size(30, 10)
    for _ in range(order.repeats):
        figures.add_rate("jobs", tasks, _seconds_of(lambda: jobs(tasks)))
        chains = _seconds_of(lambda: asyncio.run(_many_chains(flows)))
        figures.add_rate("chain3", 3 * flows, chains)
        figures.add_hops("hop", [hops(HOPS)])
    figures.answer()


async def _many_chains(count: int) -> None:
    slots = asyncio.Semaphore(FLOWS_AT_ONCE)

    async def one() -> None:
        async with slots:
            await chain3()

    await asyncio.gather(*(one() for _ in range(count)))


def _seconds_of(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    if len(sys.argv) > 2:
        drive(read_order(), int(sys.argv[2]))
    else:
        serve(read_order())
