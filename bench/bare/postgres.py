"""Bare SQL on PostgreSQL: prepared statements over arrays, one connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import asyncpg

from bench.bare.facts import now_micros
from bench.bare.store import INPUT, RESULT, SESSION, VERSION, kind_of, turn_facts

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# Fresh tables have no statistics: without these the planner reads them whole.
SETTINGS = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
ADD_RUNS = """
INSERT INTO run (
    id, namespace, workflow, version_id, state, open, failed, ended, next_position, generation,
    labels, created_at, started_at, format, kind, input
)
SELECT id, 'default', 'bench', $6, 'RUNNING', $2, 0, 0, $2, 1, '{}', $3, $3, 1, $4, $5
FROM unnest($1::UUID[]) AS v (id)
"""
ADD_TASKS = """
INSERT INTO task (
    run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting, failed,
    skipped, route, priority, ready_at, format, ready_no
)
SELECT v.id, s.step, 'default', s.step, 'task', CASE s.step WHEN 0 THEN 'READY' ELSE 'PENDING' END,
    0, 0, 0, CASE s.step WHEN 0 THEN 0 ELSE 1 END, 0, 0, 'default!noop', 0,
    CASE s.step WHEN 0 THEN $3::BIGINT END, 1,
    CASE s.step WHEN 0 THEN nextval('task_ready_no') END
FROM unnest($1::UUID[]) AS v (id) CROSS JOIN generate_series(0, $2::INTEGER - 1) AS s (step)
"""
LEASE = """
UPDATE task AS t SET state = 'RUNNING', epoch = t.epoch + 1, session_id = $3, started_at = $4
FROM (
    SELECT run_id, position FROM task
    WHERE state = 'READY' AND hold IS NULL AND namespace = 'default' AND route = 'default!noop'
        AND priority = 0 AND ready_no >= $1
    ORDER BY ready_no
    LIMIT $2
    FOR UPDATE SKIP LOCKED
) AS wanted
WHERE t.run_id = wanted.run_id AND t.position = wanted.position
RETURNING t.run_id::TEXT, t.ready_no
"""
LEASE_NEXT = """
UPDATE task AS t
SET state = 'RUNNING', epoch = t.epoch + 1, waiting = t.waiting - 1, session_id = $3,
    ready_at = $4, started_at = $4
FROM unnest($1::UUID[], $2::INTEGER[]) AS v (run_id, position)
WHERE t.run_id = v.run_id AND t.position = v.position
"""
# A constant beside the keys would let the planner read whole indexes of tables that were empty when
# it planned: positions and epochs come as arrays.
END_TASKS = """
UPDATE task AS t
SET state = 'SUCCEEDED', session_id = NULL, ended_at = $4, ended_no = t.position + 1
FROM unnest($1::UUID[], $2::INTEGER[], $3::INTEGER[]) AS v (run_id, position, epoch)
WHERE t.run_id = v.run_id AND t.position = v.position AND t.epoch = v.epoch
"""
ADD_RESULTS = """
INSERT INTO task_result (run_id, position, namespace, data)
SELECT id, $2, 'default', $3 FROM unnest($1::UUID[]) AS v (id)
"""
COUNT_DOWN = """
UPDATE run AS r SET open = r.open - 1, ended = r.ended + 1
FROM unnest($1::UUID[]) AS v (id)
WHERE r.id = v.id
"""
END_RUNS = """
UPDATE run AS r
SET open = r.open - 1, ended = r.ended + 1, state = 'SUCCEEDED', ended_at = $2
FROM unnest($1::UUID[]) AS v (id)
WHERE r.id = v.id
"""
TELL = "INSERT INTO outbox (facts, created_at) VALUES ($1, $2)"
COUNT = """
SELECT count(*) FROM task AS t JOIN run AS r ON r.id = t.run_id
WHERE t.state = 'SUCCEEDED' AND r.state = 'SUCCEEDED'
"""


class BarePostgres:
    """Implements BareConnection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._floor = 0  # what waits came after this

    @classmethod
    async def open(cls, dsn: str) -> BarePostgres:
        """Connect."""
        return cls(await asyncpg.connect(dsn, server_settings=SETTINGS))

    async def start(self, run_ids: Sequence[str], length: int, facts: bytes) -> None:
        """Insert runs with their tasks, the first of each READY."""
        now = now_micros()
        async with self._connection.transaction():
            kind = kind_of(length)
            await self._connection.execute(ADD_RUNS, run_ids, length, now, kind, INPUT, VERSION)
            await self._connection.execute(ADD_TASKS, run_ids, length, now)
            await self._connection.execute(TELL, facts, now)

    async def advance(self, run_ids: Sequence[str], step: int, facts: bytes) -> None:
        """End a task of each run with a small result, and lease the next one."""
        now = now_micros()
        async with self._connection.transaction():
            await self._end_tasks(run_ids, step, now)
            await self._connection.execute(ADD_RESULTS, run_ids, step, RESULT)
            steps = [step + 1] * len(run_ids)
            await self._connection.execute(LEASE_NEXT, run_ids, steps, SESSION, now)
            await self._connection.execute(COUNT_DOWN, run_ids)
            await self._connection.execute(TELL, facts, now)

    async def turn(self, run_ids: Sequence[str], step: int, wanted: int) -> list[str]:
        """End the last task of runs and the runs, and lease the first tasks of others."""
        now = now_micros()
        async with self._connection.transaction():
            await self._end_tasks(run_ids, step, now)
            if step:
                await self._connection.execute(ADD_RESULTS, run_ids, step, RESULT)
            await self._connection.execute(END_RUNS, run_ids, now)
            rows = await self._connection.fetch(LEASE, self._floor, wanted, SESSION, now)
            leased = [row[0] for row in rows]
            await self._connection.execute(TELL, turn_facts(run_ids, step, leased), now)
        self._floor = min((row[1] for row in rows), default=self._floor)
        return leased

    async def count_ended(self) -> int:
        """How many tasks of ended runs have ended."""
        return int(await self._connection.fetchval(COUNT))

    async def close(self) -> None:
        """Let go of the server."""
        await self._connection.close()

    async def _end_tasks(self, run_ids: Sequence[str], step: int, now: int) -> None:
        steps, epochs = [step] * len(run_ids), [1] * len(run_ids)
        await self._connection.execute(END_TASKS, run_ids, steps, epochs, now)
