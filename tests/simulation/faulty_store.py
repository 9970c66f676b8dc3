"""The store of the simulation: one real SQLite store for all nodes, behind faults.

Nodes talk to one database server, which is the production SqliteStore in memory, run inline. One
transaction is open at a time; reads outside transactions wait for it too. They share its
connection, on which they would otherwise see what is not committed, and a second connection (a
shared cache or a file) would lock tables in ways that neither production store does. Nothing is
lost by it: what such a read returns may be out of date as soon as the next transaction commits,
which is all that production code may assume about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from tests.simulation.database import Database, Hold, drive
from tests.simulation.nodes import Node
from tidemill.domain.errors import CommitUnknown, Unavailable
from tidemill.domain.identifiers import SessionId
from tidemill.ports.identity import IdentityReader
from tidemill.ports.store import Claim, Opened, Opening, Payloads, Reader, Transaction, Watch

READING_VERBS = frozenset({"lock", "lock_states", "lock_ready", "lock_untold", "claim", "peek"})

Answer = TypeVar("Answer")


class NodeStore:
    """The store as one node sees it."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._node = node
        self._faults = Faults(database, node)
        inner = database.inner
        self.watch: Watch = _Reads(self, inner.watch)
        self.payloads: Payloads = _Reads(self, inner.payloads)
        self.reader: Reader = _Reads(self, inner.reader)
        self.identity: IdentityReader = _Reads(self, inner.identity)

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction with faults."""
        return _FaultyTransaction(self._database, self._node, self._faults)

    async def renew_sessions(
        self, session_ids: Sequence[SessionId], ttl_micros: int
    ) -> set[SessionId]:
        """Renew with faults."""
        await self._faults.before()
        hold = await self._database.take(self._node)
        hold.check()
        try:
            if self._database.chance.sometimes("store.lost_commit"):
                raise CommitUnknown("connection lost during commit")
            renewed = drive(self._database.inner.renew_sessions(session_ids, ttl_micros))
        finally:
            hold.release()
        self._database.on_commit(False)
        await self._faults.after_commit()
        return renewed

    async def read(
        self, verb: Callable[..., Coroutine[Any, Any, Answer]], *a: Any, **k: Any
    ) -> Answer:
        """Run a read outside transactions."""
        await self._faults.before()
        hold = await self._database.take(self._node)
        hold.check()
        try:
            answer = drive(verb(*a, **k))
        finally:
            hold.release()
        await self._faults.after_read()
        return answer

    def alarm(self) -> str:
        """Nothing: what the server has committed it keeps."""
        return ""

    async def migrate(self, tell: Callable[[str], None] | None = None) -> None:
        """Nothing: the simulation has migrated the store."""

    async def migrations_left(self) -> list[str]:
        """None, for the same reason."""
        return []

    async def close(self) -> None:
        """Nothing: the store belongs to all nodes."""


class Faults:
    """Where the store goes wrong for one node."""

    def __init__(self, database: Database, node: Node) -> None:
        self._database = database
        self._chance = database.chance
        self._node = node

    async def before(self) -> None:
        """Before a transaction or a read begins."""
        await asyncio.sleep(self._chance.between(0.0001, 0.001))
        if self._database.down_until > self._database.loop.time():
            raise Unavailable("connection refused")
        if self._chance.sometimes("store.error_before"):
            raise Unavailable("connection lost")
        if self._chance.sometimes("store.busy"):
            raise Unavailable("database is locked")

    async def at_statement(self, hold: Hold) -> None:
        """Before a statement of a transaction."""
        if self._chance.sometimes("store.stall_statement"):
            await self._stall()
        if self._chance.sometimes("node.kill_in_transaction"):
            await self._die()
        if self._chance.sometimes("node.pause_in_transaction"):
            await self._sleep_deeply()
        hold.check()
        if self._chance.sometimes("store.disconnect"):
            hold.rollback()
            raise Unavailable("connection lost")

    def leave_out(self, verb: str, waits: bool, answer: Any) -> Any:
        """What a server with row locks does: skip rows that others hold, if told not to wait."""
        if verb == "runs.lock" and not waits:
            return [run for run in answer if not self._chance.sometimes("store.run_locked")]
        if verb == "tasks.claim":
            free = [task for task in answer.tasks if not self._chance.sometimes("store.row_locked")]
            return Claim(free, *answer[1:])
        if isinstance(answer, Opened) and not waits:
            return self._without_held_runs(answer)
        return answer

    def _without_held_runs(self, opened: Opened) -> Opened:
        runs = [run for run in opened.runs if not self._chance.sometimes("store.run_locked")]
        had = {run.id for run in runs}
        tasks = [task for task in opened.tasks if task.run_id in had]
        return opened._replace(runs=runs, tasks=tasks)

    async def at_commit(self, hold: Hold) -> None:
        """Between the last statement and the commit."""
        await asyncio.sleep(self._chance.between(0.0005, 0.003))
        if self._chance.sometimes("store.stall_commit"):
            await self._stall()
        hold.check()
        if self._database.down_until > self._database.loop.time():
            hold.rollback()
            raise CommitUnknown("connection lost during commit")
        if self._chance.sometimes("store.lost_commit"):
            hold.rollback()
            raise CommitUnknown("connection lost during commit")
        if self._chance.sometimes("store.error_at_commit"):
            hold.rollback()
            raise Unavailable("serialization failure")

    async def after_commit(self) -> None:
        """Between the commit and its answer."""
        if self._chance.sometimes("node.kill_after_commit"):
            await self._die()
        if self._chance.sometimes("store.commit_then_error"):
            raise CommitUnknown("connection lost during commit")
        if self._chance.sometimes("store.stall_reply"):
            await self._stall()

    async def after_read(self) -> None:
        """Between a read and its answer, which others may make out of date."""
        await asyncio.sleep(self._chance.between(0.0001, 0.001))
        if self._chance.sometimes("store.stall_reply"):
            await self._stall()

    async def _stall(self) -> None:
        await asyncio.sleep(self._chance.random.choice((0.05, 0.3, 1.0, 3.0, 7.0)))

    async def _die(self) -> None:
        self._database.journal.note(self._node.name, "killed inside the store")
        self._node.kill()
        await self._node.stop_here()

    async def _sleep_deeply(self) -> None:
        seconds = self._chance.random.choice((1.0, 4.0, 8.0, 20.0))
        self._database.journal.note(self._node.name, "paused inside the store for", seconds)
        self._node.pause()
        self._database.loop.call_outside(seconds, self._node.resume)
        await asyncio.sleep(0)


class _FaultyTransaction:
    def __init__(self, database: Database, node: Node, faults: Faults) -> None:
        self._database = database
        self._node = node
        self._faults = faults
        self._hold: Hold | None = None

    async def __aenter__(self) -> Any:
        await self._faults.before()
        self._hold = await self._database.take(self._node)
        self._hold.check()
        return _Verbs(self._hold, self._faults, self._hold.begin())

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        hold = self._hold
        assert hold is not None
        if error is not None:
            hold.rollback()
            return
        try:
            await self._faults.at_commit(hold)
            hold.commit()
        except BaseException:
            hold.rollback()
            raise
        await self._faults.after_commit()


class _Verbs:
    """A transaction, or one of its tables, with a fault point before each verb."""

    def __init__(self, hold: Hold, faults: Faults, inner: Any, table: str = "") -> None:
        self._hold = hold
        self._faults = faults
        self._inner = inner
        self._table = table

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._inner, name)
        if not callable(target):
            part = _Verbs(self._hold, self._faults, target, name)
            setattr(self, name, part)
            return part
        rows = self._table in {"runs", "tasks"} and name not in READING_VERBS
        moves = rows or name in {"begin", "write"}

        async def verb(*args: Any, **options: Any) -> Any:
            await self._faults.at_statement(self._hold)
            self._hold.check()
            self._hold.moved = self._hold.moved or moves
            answer = drive(target(*args, **options))
            waits = options.get("wait", False) or any(
                isinstance(one, Opening) and one.wait for one in args
            )
            return self._faults.leave_out(f"{self._table}.{name}", waits, answer)

        setattr(self, name, verb)
        return verb


class _Reads:
    """Verbs that run outside transactions."""

    def __init__(self, store: NodeStore, inner: Any) -> None:
        self._store = store
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._inner, name)

        async def verb(*args: Any, **options: Any) -> Any:
            return await self._store.read(target, *args, **options)

        setattr(self, name, verb)
        return verb
