"""Nodes: what can be killed, paused and restarted, each with a wall clock of its own."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from tests.simulation.loop import HOST, SimLoop
from tidemill.domain.identifiers import SECOND, Moment, RunId, SessionId

EPOCH: Moment = 1_767_225_600 * SECOND
"""When every simulation begins: the first second of 2026."""


class Node:
    """One process: all tasks that are started on it, however deep, live and die with it."""

    def __init__(self, loop: SimLoop, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.silent = False  # dead without a word: nobody is told that its connections are gone
        self.on_kill: list[Callable[[], None]] = []
        self.on_pause: list[Callable[[], None]] = []
        self.on_resume: list[Callable[[], None]] = []
        self._loop = loop
        self._held: list[asyncio.Handle] = []
        self._context = contextvars.Context()
        self._context.run(HOST.set, self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start work on this node."""
        return self._loop.create_task(work, context=self._context.copy())

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep work until the node resumes, or for good."""
        self._held.append(handle)

    def kill(self) -> None:
        """SIGKILL: nothing of it runs again, not even a `finally`."""
        if not self.alive:
            return
        self.alive = False
        for callback in list(self.on_kill):
            callback()

    def pause(self) -> None:
        """SIGSTOP: time moves on without it."""
        if not self.alive or self.paused:
            return
        self.paused = True
        for callback in list(self.on_pause):
            callback()

    def resume(self) -> None:
        """SIGCONT."""
        if not self.alive or not self.paused:
            return
        self.paused = False
        for callback in list(self.on_resume):
            callback()
        held, self._held = self._held, []
        self._loop._ready.extend(held)

    async def stop_here(self) -> None:
        """Wait for good: where a process that was just killed stands."""
        await self._loop.create_future()


class NodeClock:
    """The clock of a node: its wall clock may be wrong by an hour, its durations are right."""

    def __init__(self, loop: SimLoop, skew_seconds: float = 0.0) -> None:
        self._loop = loop
        self._skew = skew_seconds

    def now(self) -> Moment:
        """Virtual time, plus what this node is wrong by."""
        return EPOCH + round((self._loop.time() + self._skew) * SECOND)

    def monotonic(self) -> float:
        """Virtual seconds."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)


class NodeEntropy:
    """Chance of a node, drawn from the seed."""

    def __init__(self, loop: SimLoop, random: Random) -> None:
        self._loop = loop
        self._random = random

    def fraction(self) -> float:
        """The next draw."""
        return self._random.random()

    def run_id(self) -> RunId:
        """A UUIDv7 of the virtual moment."""
        millis = (EPOCH // 1000) + int(self._loop.time() * 1000)
        high = (millis << 16) | 0x7000 | self._random.getrandbits(12)
        low = (0b10 << 62) | self._random.getrandbits(62)
        text = f"{(high << 64) | low:032x}"
        return RunId("-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])))

    def session_id(self) -> SessionId:
        """A fresh name."""
        return SessionId(f"s{self._random.getrandbits(64):016x}")

    def secret(self) -> str:
        """As good as a secret, for a simulation."""
        return hashlib.sha256(self._random.randbytes(16)).hexdigest()
