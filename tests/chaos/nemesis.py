"""The nemesis: carries the script of faults out, and brings back whatever it or nobody ended."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence

import psutil

from tests.chaos.faults import Fault
from tests.deployment import Deployment, RoleProcess
from tests.servers import Server

LOOK_SECONDS = 0.05


class Nemesis:
    """Hurts one deployment and its servers."""

    def __init__(
        self, deployment: Deployment, servers: dict[str, Server], load: RoleProcess
    ) -> None:
        self.fired: Counter[str] = Counter()
        self.unexpected: list[str] = []  # ends of processes that nobody asked for
        self.deployment = deployment
        self._servers = servers
        self._load = load
        self._busy: set[str] = set()  # servers that are down or being started

    async def run(self, faults: Sequence[Fault]) -> None:
        """Carry out every fault at its time, then undo what is left of them."""
        begin = time.monotonic()
        async with asyncio.TaskGroup() as under_way:
            watching = under_way.create_task(self.watch())
            for fault in faults:
                await asyncio.sleep(max(0.0, begin + fault.at - time.monotonic()))
                if not self._load.running:
                    break  # nothing left to disturb; whoever waits for its end tells
                if self._begin(fault, under_way):
                    self.fired[fault.name] += 1
            watching.cancel()
        self.heal()

    def heal(self) -> None:
        """Let go on what is paused."""
        for process in self.deployment.processes:
            process.resume()

    async def watch(self) -> None:
        """Start again whatever has ended; without end."""
        while True:
            for process in self.deployment.processes:
                self._look_at(process)
            await asyncio.sleep(LOOK_SECONDS)

    async def stop_all(self) -> None:
        """End every role in order: none of them may be left with a bad status."""
        for process in self.deployment.processes:
            process.terminate()
        for process in self.deployment.processes:
            status = await asyncio.to_thread(process.wait)
            if status != 0:
                self.unexpected.append(f"{process.name} ended with {status} when asked to drain")

    def _look_at(self, process: RoleProcess) -> None:
        status = process.status
        if status is None:
            return
        # Before it has introduced itself, it may not know what SIGTERM means.
        early = f"(process {process.pid})" not in process.text()
        if not process.asked_to_end or status not in {0, -9, *([-15] if early else [])}:
            self.unexpected.append(f"{process.name} ended with {status}")
        process.start()

    def _begin(self, fault: Fault, under_way: asyncio.TaskGroup) -> bool:
        """Whether the fault could be done to anyone."""
        if fault.role in self._servers:
            if fault.role in self._busy:
                return False
            self._busy.add(fault.role)
            under_way.create_task(self._hit_server(fault))
            return True
        process = self._victim(fault)
        if process is None:
            return False
        if fault.kind == "kill":
            process.kill()
        elif fault.kind == "terminate":
            process.terminate()
        else:
            under_way.create_task(self._pause(process, fault.seconds))
        return True

    def _victim(self, fault: Fault) -> RoleProcess | None:
        group = {
            "worker": self.deployment.workers,
            "scheduler": self.deployment.schedulers,
            "notifier": self.deployment.notifiers,
        }.get(fault.role, [])
        alive = [one for one in group if one.running and not one.asked_to_end and not one.paused]
        return alive[int(fault.chance * len(alive))] if alive else None

    async def _pause(self, process: RoleProcess, seconds: float) -> None:
        pid = process.pid
        process.pause()
        await asyncio.sleep(seconds)
        if process.pid == pid:
            process.resume()

    async def _hit_server(self, fault: Fault) -> None:
        server = self._servers[fault.role]
        if fault.kind == "pause":
            await self._pause_server(server, fault.seconds)
        else:
            await asyncio.to_thread(server.stop if fault.kind == "restart" else server.kill)
            await asyncio.sleep(fault.seconds)
            await asyncio.to_thread(server.start)
        self._busy.discard(fault.role)

    async def _pause_server(self, server: Server, seconds: float) -> None:
        """Freeze it with its children: connections are taken, and nothing answers."""
        first = psutil.Process(server.pid)
        family = [first, *first.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.suspend()
        await asyncio.sleep(seconds)
        for member in reversed(family):
            with contextlib.suppress(psutil.NoSuchProcess):
                member.resume()
