"""Every order of the statements of two operations, once.

The search runs both operations from the same beginning again and again, and takes another way at
the last gate where there is one left. Two orders that differ only in neighbours that do not depend
on each other (footprints.py) are one: sleep sets leave the second of them out. So what is run is
one order of each class, all classes, and nothing is bounded by a number of switches. A statement
that waits for a lock of the other operation has begun: the other goes on until it is let in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import asyncpg

from tests.interleaving.footprints import Step, dependent
from tests.interleaving.gate import Player

ORDERS_MAX = 3_000


class Order(NamedTuple):
    """One order that was run to its end, as the names of players and statements."""

    statements: tuple[str, ...]
    failures: tuple[BaseException | None, ...]

    def __str__(self) -> str:
        return "\n".join(self.statements)


class Fork(NamedTuple):
    """A moment at which somebody could go: who, who need not, and who went."""

    options: dict[int, Step]
    asleep: set[int]
    taken: int


Operation = Callable[[], Awaitable[object]]
Begin = Callable[[], Awaitable[Sequence[Operation]]]
Check = Callable[[Order], Awaitable[None]]


class Explorer:
    """Runs a pair of operations in all orders."""

    def __init__(
        self, observer: asyncpg.Connection[asyncpg.Record], *, reduce: bool = True
    ) -> None:
        self._observer = observer
        self._reduce = reduce
        self._path: list[Fork] = []
        self.orders = 0
        self.deadlocks = 0
        self.endings: set[object] = set()  # noted by whoever checks

    async def explore(self, begin: Begin, check: Check) -> None:
        """Run every order, and check what is left after each."""
        self._path = []
        while True:
            order = await self._run(await begin())
            if order is not None:
                self.orders += 1
                assert self.orders <= ORDERS_MAX, "the pair has too many orders"
                await check(order)
            if not self._step_back():
                return

    def _step_back(self) -> bool:
        """Go back to the last fork with a way that was not taken."""
        while self._path:
            fork = self._path.pop()
            asleep = fork.asleep | {fork.taken}
            left = [place for place in fork.options if place not in asleep]
            if left:
                self._path.append(Fork(fork.options, asleep, left[0]))
                return True
        return False

    async def _run(self, operations: Sequence[Operation]) -> Order | None:
        """One order, or None when it turns out to be like one that was run already."""
        players = [
            Player(name, operation()) for name, operation in zip("AB", operations, strict=True)
        ]
        told: list[str] = []
        depth = 0
        asleep: set[int] = set()
        await self._settle(players)
        while not all(player.done for player in players):
            options = {
                place: player.step
                for place, player in enumerate(players)
                if player.step is not None
            }
            if not options:
                await self._await_victim(players)
            elif asleep >= options.keys():
                await _abandon(players)
                return None
            else:
                taken, asleep = self._choose(depth, options, asleep)
                depth += 1
                told.append(f"{players[taken].name}: {options[taken].name}")
                await self._let_go(players, taken)
        return Order(tuple(told), tuple(player.task.exception() for player in players))

    async def _let_go(self, players: Sequence[Player], taken: int) -> None:
        step = players[taken].go()
        await players[taken].settle(self._observer)
        if step.publishes or players[taken].blocked:
            await self._settle(players)

    def _choose(
        self, depth: int, options: dict[int, Step], asleep: set[int]
    ) -> tuple[int, set[int]]:
        """Who goes now, and who need not go next."""
        if depth == len(self._path):
            awake = [place for place in options if place not in asleep]
            self._path.append(Fork(options, asleep & options.keys(), awake[0]))
        fork = self._path[depth]
        here = {place: step.name for place, step in options.items()}
        there = {place: step.name for place, step in fork.options.items()}
        assert here == there, f"the same beginning went on differently: {there}, then {here}"
        step = options[fork.taken]
        sleeping = {
            place
            for place in fork.asleep
            if self._reduce and place in options and not dependent(options[place], step)
        }
        return fork.taken, sleeping

    async def _settle(self, players: Sequence[Player]) -> None:
        for player in players:
            if not player.done and player.step is None:
                await player.settle(self._observer)

    async def _await_victim(self, players: Sequence[Player]) -> None:
        """Both wait for each other: the server ends one of them."""
        self.deadlocks += 1
        while all(player.blocked for player in players if not player.done):
            await self._settle(players)


async def _abandon(players: Sequence[Player]) -> None:
    for player in players:
        player.abandon()
    await asyncio.wait([player.task for player in players])
