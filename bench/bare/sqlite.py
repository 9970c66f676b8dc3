"""Bare SQL on SQLite: one statement for many rows on a thread; connections take turns to write."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from bench.bare.facts import now_micros
from bench.bare.store import INPUT, RESULT, SESSION, VERSION, kind_of, turn_facts

PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16384", "busy_timeout = 1000")
ADD_RUN = """
INSERT INTO run (
    id, namespace, workflow, version_id, state, open, failed, ended, next_position, generation,
    labels, created_at, started_at, format, kind, input
) VALUES (
    ?1, 'default', 'bench', ?6, 'RUNNING', ?2, 0, 0, ?2, 1, '{}', ?3, ?3, 1, ?4, ?5
)
"""
ADD_TASK = """
INSERT INTO task (
    run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
    skipped, route, priority, ready_at, format, ready_no
) VALUES (
    ?1, ?2, 'default', ?2, 'task', CASE ?2 WHEN 0 THEN 'READY' ELSE 'PENDING' END, 0, 0, 0,
    CASE ?2 WHEN 0 THEN 0 ELSE 1 END, 0, 0, 'default!noop', 0, CASE ?2 WHEN 0 THEN ?3 END, 1, ?4
)
"""
LEASE = """
UPDATE task SET state = 'RUNNING', epoch = epoch + 1, session_id = ?2, started_at = ?3
WHERE rowid IN (
    SELECT rowid FROM task INDEXED BY task_ready
    WHERE state = 'READY' AND hold IS NULL AND namespace = 'default' AND route = 'default!noop'
        AND priority = 0
    ORDER BY ready_no
    LIMIT ?1
)
RETURNING run_id
"""
LEASE_NEXT = """
UPDATE task
SET state = 'RUNNING', epoch = epoch + 1, waiting = waiting - 1, session_id = ?3, ready_at = ?4,
    started_at = ?4
WHERE run_id = ?1 AND position = ?2 AND waiting = 1
"""
END_TASK = """
UPDATE task SET state = 'SUCCEEDED', session_id = NULL, ended_at = ?3, ended_no = ?2 + 1
WHERE run_id = ?1 AND position = ?2 AND epoch = 1
"""
ADD_RESULT = """
INSERT INTO task_result (run_id, position, namespace, data) VALUES (?1, ?2, 'default', ?3)
"""
COUNT_DOWN = "UPDATE run SET open = open - 1, ended = ended + 1 WHERE id = ?1"
END_RUN = """
UPDATE run SET open = open - 1, ended = ended + 1, state = 'SUCCEEDED', ended_at = ?2
WHERE id = ?1
"""
TELL = "INSERT INTO outbox (facts, created_at) VALUES (?1, ?2)"
COUNT = """
SELECT count(*) FROM task AS t JOIN run AS r ON r.id = t.run_id
WHERE t.state = 'SUCCEEDED' AND r.state = 'SUCCEEDED'
"""


class Turnstile:
    """What connections to one file share: whose turn it is, and the places in the queue."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.numbers = count(1)


class BareSqlite:
    """Implements BareConnection."""

    def __init__(self, path: Path, turnstile: Turnstile) -> None:
        self._raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._turnstile = turnstile
        for pragma in PRAGMAS:
            self._raw.execute(f"PRAGMA {pragma}")

    async def start(self, run_ids: Sequence[str], length: int, facts: bytes) -> None:
        """Insert runs with their tasks, the first of each READY."""
        await asyncio.to_thread(self._start, run_ids, length, facts)

    async def advance(self, run_ids: Sequence[str], step: int, facts: bytes) -> None:
        """End a task of each run with a small result, and lease the next one."""
        await asyncio.to_thread(self._advance, run_ids, step, facts)

    async def turn(self, run_ids: Sequence[str], step: int, wanted: int) -> list[str]:
        """End the last task of runs and the runs, and lease the first tasks of others."""
        return await asyncio.to_thread(self._turn, run_ids, step, wanted)

    async def count_ended(self) -> int:
        """How many tasks of ended runs have ended."""
        return int(self._raw.execute(COUNT).fetchone()[0])

    async def close(self) -> None:
        """Let go of the file."""
        self._raw.close()

    def _start(self, run_ids: Sequence[str], length: int, facts: bytes) -> None:
        now = now_micros()
        numbers = self._turnstile.numbers
        with self._transaction() as raw:
            rest = (length, now, kind_of(length), INPUT, VERSION)
            raw.executemany(ADD_RUN, ((one, *rest) for one in run_ids))
            for step in range(length):
                places = (next(numbers) if step == 0 else None for _ in run_ids)
                rows = zip(run_ids, places, strict=True)
                raw.executemany(ADD_TASK, ((one, step, now, place) for one, place in rows))
            raw.execute(TELL, (facts, now))

    def _advance(self, run_ids: Sequence[str], step: int, facts: bytes) -> None:
        now = now_micros()
        with self._transaction() as raw:
            raw.executemany(END_TASK, ((one, step, now) for one in run_ids))
            raw.executemany(ADD_RESULT, ((one, step, RESULT) for one in run_ids))
            raw.executemany(LEASE_NEXT, ((one, step + 1, SESSION, now) for one in run_ids))
            raw.executemany(COUNT_DOWN, ((one,) for one in run_ids))
            raw.execute(TELL, (facts, now))

    def _turn(self, run_ids: Sequence[str], step: int, wanted: int) -> list[str]:
        now = now_micros()
        with self._transaction() as raw:
            raw.executemany(END_TASK, ((one, step, now) for one in run_ids))
            if step:
                raw.executemany(ADD_RESULT, ((one, step, RESULT) for one in run_ids))
            raw.executemany(END_RUN, ((one, now) for one in run_ids))
            leased = [row[0] for row in raw.execute(LEASE, (wanted, SESSION, now)).fetchall()]
            raw.execute(TELL, (turn_facts(run_ids, step, leased), now))
        return leased

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._turnstile.lock:
            self._raw.execute("BEGIN IMMEDIATE")
            try:
                yield self._raw
                self._raw.execute("COMMIT")
            finally:
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")
