"""The gate before every statement, and the players that stop at it.

The connections of a gated store are of a class of their own: each statement that a player sends,
BEGIN and COMMIT too, waits until the director lets it go. Everything else passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextvars import ContextVar
from typing import Any

import asyncpg

from tests.interleaving.footprints import (
    VAGUE,
    Access,
    Step,
    accesses_of,
    covered,
    held_after,
    name_of,
)

STUCK_SECONDS = 10.0
GLANCE_SECONDS = 0.003
"""How long a statement may take before somebody looks whether it waits for a lock."""

BLOCKED = "SELECT cardinality(pg_blocking_pids($1)) > 0"
ENDS = ("COMMIT", "ROLLBACK")

_player: ContextVar[Player | None] = ContextVar("player", default=None)


class Player:
    """One of the two operations: at the gate, under way, waiting for a lock, or done."""

    def __init__(self, name: str, operation: Awaitable[object]) -> None:
        self.name = name
        self.step: Step | None = None
        self.blocked = False
        self._held: list[Access] = []  # what others may wait for, or see after the commit
        self._locked: list[Access] = []  # the part of it that is locked for sure
        self._pid = 0
        self._free = False
        self._go = asyncio.Event()
        self._settled = asyncio.Event()
        self.task = asyncio.create_task(self._play(operation))

    @property
    def done(self) -> bool:
        """Whether the operation is over."""
        return self.task.done()

    def go(self) -> Step:
        """Let the statement at the gate run; return what it is."""
        step, self.step = self.step, None
        assert step is not None
        self._settled.clear()
        self._go.set()
        return step

    def abandon(self) -> None:
        """Break the operation off; its transaction is rolled back without further stops."""
        self._free = True
        self.task.cancel()

    async def settle(self, observer: asyncpg.Connection[asyncpg.Record]) -> None:
        """Wait until the player is at the gate, done, or waits for a lock of the other."""
        async with asyncio.timeout(STUCK_SECONDS):
            while not self._settled.is_set():
                self.blocked = self.blocked and await observer.fetchval(BLOCKED, self._pid)
                if self.blocked:
                    return
                self.blocked = not await self._settles_soon()  # perhaps
        self.blocked = False

    async def _settles_soon(self) -> bool:
        try:
            async with asyncio.timeout(GLANCE_SECONDS):
                return await self._settled.wait()
        except TimeoutError:
            return False

    async def arrive(
        self, connection: GatedConnection, query: str, values: Sequence[Any]
    ) -> tuple[str, bool]:
        """Wait at the gate; return the name of the statement, and whether it is its own commit."""
        name = name_of(query)
        if self._free:
            return name, True
        self._pid = connection.get_server_pid()
        alone = not connection.is_in_transaction()
        self.step = self._described(name, values, alone=alone)
        self._settled.set()
        await self._go.wait()
        self._go.clear()
        return name, alone

    def passed(self, name: str, values: Sequence[Any], rows: Sequence[Any]) -> None:
        """A statement of a transaction was run."""
        if name in ENDS:
            self._held.clear()
            self._locked.clear()
        elif name != "BEGIN":
            held = held_after(name, values, rows)
            self._held += held
            self._locked += [] if name in VAGUE else held

    def _described(self, name: str, values: Sequence[Any], *, alone: bool) -> Step:
        if name in ENDS:
            return Step(name, (), tuple(self._held))
        wanted = accesses_of(name, values)
        fresh = tuple(one for one in wanted if not covered(one, self._locked))
        return Step(name, fresh, wanted if alone and name != "BEGIN" else ())

    async def _play(self, operation: Awaitable[object]) -> object:
        _player.set(self)
        try:
            return await operation
        finally:
            self._settled.set()


class GatedConnection(asyncpg.Connection):
    """A connection whose statements stop at the gate when a player sends them."""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Run a command, once it may."""
        player = _player.get()
        if player is None:
            return str(await super().execute(query, *args, timeout=timeout))
        name, alone = await player.arrive(self, query, args)
        answer = await super().execute(query, *args, timeout=timeout)
        if not alone or name == "BEGIN":
            player.passed(name, args, ())
        return str(answer)

    async def fetch(self, query: str, *args: Any, timeout: float | None = None, **more: Any) -> Any:
        """Run a query, once it may."""
        player = _player.get()
        if player is None:
            return await super().fetch(query, *args, timeout=timeout, **more)
        name, alone = await player.arrive(self, query, args)
        rows = await super().fetch(query, *args, timeout=timeout, **more)
        if not alone:
            player.passed(name, args, rows)
        return rows
