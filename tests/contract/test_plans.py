"""Queries that must be fast go by their indexes, also on fresh tables without statistics."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.builders import NOON, a_run, a_run_id
from tests.contract.given import LANE, given
from tidemill.domain.run import RunState
from tidemill.ports.store import FORMAT_MAX
from tidemill.stores.postgres import statements as postgres_statements
from tidemill.stores.postgres.connection import PooledConnection
from tidemill.stores.postgres.statements import columns
from tidemill.stores.postgres.store import PostgresStore
from tidemill.stores.rows import run_to_changes, task_from_row, task_to_changes
from tidemill.stores.sqlite import connection as sqlite_connection
from tidemill.stores.sqlite.store import SqliteStore

ROWS = 50_000
BATCH = 500
FILL = """
INSERT INTO task (run_id, position, namespace, node, kind, state, epoch, failures, losses, waiting,
    failed, skipped, route, priority, format, ready_no)
SELECT $1, place, 'default', place, 'task', 'READY', 0, 0, 0, 0, 0, 0, 'default', 0, 1, place
FROM generate_series(0, $2::INTEGER - 1) AS place
"""

# These look at all rows on purpose: they are rare, or the table is small.
WHOLE_TABLE = {
    "close_all_sessions",
    "find_runs",
    "list_sessions",
    "lost_tasks",
    "prune_sessions",
    "prune_outbox",
}


async def test_batches_find_their_rows_by_the_primary_key(postgres: PostgresStore) -> None:
    run_id = a_run_id()
    run = a_run(id=run_id)
    await given(postgres, run)
    pool = await postgres._pool.get()
    async with pool.acquire() as connection:
        await connection.execute("ALTER TABLE task SET (autovacuum_enabled = FALSE)")
        await connection.execute(FILL, run_id, ROWS)
        keys = [(run_id, place) for place in range(0, ROWS, ROWS // BATCH)]
        rows = await connection.fetch(
            postgres_statements.QUERIES["lock_tasks"], *columns(keys), FORMAT_MAX
        )
        changes = columns([task_to_changes(task_from_row(tuple(row))) for row in rows])
        cases: dict[str, list[object]] = {
            "lock_tasks": [*columns(keys), FORMAT_MAX],
            "save_task": [*changes],
            "read_results": [*columns(keys)],
            "lock_runs_skipping": [[run_id] * BATCH, FORMAT_MAX],
            "save_run": [*columns([run_to_changes(run)])],
        }
        plans = {
            name: await connection.fetch(explained(name), *values) for name, values in cases.items()
        }

    assert len(rows) == BATCH
    for name, plan in plans.items():
        text = "\n".join(row[0] for row in plan)
        assert re.search(r"Index (Only )?Scan using \w+_pkey", text), f"{name}:\n{text}"
        assert not re.search(r"Seq Scan|Hash Join|Merge Join", text), f"{name}:\n{text}"


HOT = (
    "open_turn",
    "write_turn",
    "claim_ready",
    "claim_ready_alone",
    "lock_sessions",
    "lock_runs_skipping",
    "lock_runs_waiting",
    "peek_runs",
    "save_run",
    "lock_tasks",
    "save_task",
    "read_results",
    "read_inputs",
    "read_runs",
    "read_first_tasks",
    "read_versions",
    "add_result",
    "add_attempt",
    "add_log",
    "free_keys",
    "read_keys",
    "extend_keys",
)


@pytest.mark.parametrize("before", ["SELECT 1", "VACUUM (ANALYZE) run, task, session, task_result"])
async def test_plans_made_for_empty_tables_serve_full_ones(
    postgres: PostgresStore, before: str
) -> None:
    pool = await postgres._pool.get()
    async with pool.acquire() as connection:
        await connection.execute(before)
        plans = {name: await generic_plan(connection, name) for name in HOT}

    for name, plan in plans.items():
        # An index that is read without a condition is read whole, once for each batch.
        for scan, below in pairwise([*plan, ""]):
            if re.search(r"Index (Only )?Scan", scan):
                assert "Index Cond" in below, f"{name}:\n" + "\n".join(plan)
        text = "\n".join(plan)
        assert not re.search(r"Seq Scan|Hash Join|Merge Join", text), name
        # A key that is only a filter means that all tasks of a run are read for each of them.
        assert not re.search(r'Filter: .*("position"|run_id) =', text), f"{name}:\n{text}"


async def generic_plan(connection: PooledConnection, name: str) -> list[str]:
    query = postgres_statements.QUERIES[name]
    count = max(int(number) for number in re.findall(r"\$(\d+)", query))
    await connection.execute(f"PREPARE hot AS {query}")
    plan = await connection.fetch(f"EXPLAIN EXECUTE hot ({', '.join(['NULL'] * count)})")
    await connection.execute("DEALLOCATE hot")
    return [row[0] for row in plan]


def explained(name: str) -> str:
    return "EXPLAIN " + postgres_statements.QUERIES[name]


LOWEST, HIGHEST = "00000000-0000-0000-0000-000000000000", "fffffffe-0000-0000-0000-000000000000"
DEAD: list[object] = ["default", None, None, None, 10]
PAGE: list[object] = ["default", LOWEST, HIGHEST, 0, 2**62, [], [], None, 10]
JOBS: list[object] = ["default", HIGHEST, None, ["READY"]]
CLAIM = [*LANE, 40_000, 100, FORMAT_MAX, 1_024]
NAMED_INDEXES: dict[str, tuple[str, list[object]]] = {
    "claim_ready": ("task_ready", CLAIM),
    "claim_ready_alone": ("task_ready_alone", CLAIM),
    "due_tasks": ("task_due", [10, FORMAT_MAX]),
    "due_runs": ("run_deadline", [10, FORMAT_MAX]),
    "orphaned_tasks": ("task_granted", [10, FORMAT_MAX]),
    "held_tasks": ("task_granted", [["session"]]),
    "count_granted": ("task_granted", [["session"]]),
    "unsettled_runs": ("run_unsettled", [10, FORMAT_MAX]),
    "lock_ready_tasks": ("task_pkey", [a_run_id(), False, 0, 10, FORMAT_MAX]),
    "ready_lanes": ("task_ready", []),
    "read_outbox": ("outbox_position", [0, 10]),
    "stamp_outbox": ("outbox_unstamped", [0, 10, 0]),
    "lock_stamped": ("outbox_unstamped", [0]),
    "list_dead": ("task_dead_letter", DEAD),
    "list_dead_errors": ("task_dead_letter", DEAD),
    "list_runs_newest": ("run_listing", PAGE),
    "list_runs_oldest": ("run_listing", PAGE),
    "list_open_runs_newest": ("run_open", PAGE),
    "list_unsuccessful_runs_newest": ("run_unsuccessful", [*PAGE, "FAILED"]),
    "list_runs_of_kind_newest": ("run_by_kind", [*PAGE, "job"]),
    "list_runs_of_workflow_newest": ("run_by_workflow", [*PAGE, "orders"]),
    "list_labelled_runs_newest": ("run_label_pkey", [*PAGE, "team", "blue"]),
    "list_jobs": ("run_by_kind", [*JOBS, 10]),
    "list_open_jobs": ("run_open", [*JOBS, 10]),
    "list_unsuccessful_jobs": ("run_unsuccessful", [*JOBS, 10, "FAILED"]),
    "list_granted_jobs": ("task_granted", [*JOBS, 10]),
    "list_backoff_jobs": ("task_backoff", [*JOBS, 10]),
    "count_ready": ("task_ready", [["default"], ["default"], [0], 10]),
    "count_held": ("task_held", ["default", 10]),
    "count_running": ("task_granted", ["default"]),
    "count_all": ("task_dead_letter", ["default", 10]),
    "expired_keys": ("start_key_expiry", [10]),
    "list_workflows": ("workflow_pkey", ["default", "", "", None, None, False, 10]),
    "list_releases": ("workflow_release_pkey", ["default", "orders", 9, 10]),
}


@pytest.mark.parametrize("name", NAMED_INDEXES)
async def test_queries_go_by_the_index_that_they_name(postgres: PostgresStore, name: str) -> None:
    index, values = NAMED_INDEXES[name]
    pool = await postgres._pool.get()
    async with pool.acquire() as connection:
        plan = await connection.fetch(explained(name), *values)

    text = "\n".join(row[0] for row in plan)
    assert re.search(rf"\b{index}\b", text), text
    assert "Seq Scan" not in text, text


async def test_deadlines_are_not_looked_for_among_all_that_has_ended(
    postgres: PostgresStore,
) -> None:
    await given(postgres, *(a_run(state=RunState.SUCCEEDED, ended_at=NOON) for _ in range(500)))
    pool = await postgres._pool.get()
    async with pool.acquire() as connection:
        await connection.execute("ANALYZE run")
        plan = await connection.fetch(explained("due_runs"), 10, FORMAT_MAX)

    text = "\n".join(row[0] for row in plan)
    assert re.findall(r"Index Scan using (\w+)", text) == ["run_deadline"], text


async def test_what_was_lost_is_looked_for_session_by_session(postgres: PostgresStore) -> None:
    pool = await postgres._pool.get()
    async with pool.acquire() as connection:
        plan = await connection.fetch(explained("lost_tasks"), 10, True, FORMAT_MAX)

    text = "\n".join(row[0] for row in plan)
    assert re.search(r"Index Scan using task_granted.*\n\s+Index Cond: \(session_id = s.id\)", text)
    assert re.findall(r"Seq Scan on (\w+)", text) == ["session"]


@pytest.mark.parametrize("name", sorted(set(sqlite_connection.QUERIES) - WHOLE_TABLE))
async def test_no_query_reads_a_whole_table_on_sqlite(
    sqlite_memory: SqliteStore, name: str
) -> None:
    query = "EXPLAIN QUERY PLAN " + sqlite_connection.QUERIES[name]
    numbered = max((int(number) for number in re.findall(r"\?(\d+)", query)), default=0)
    parameters = numbered or query.count("?")

    plan = sqlite_memory._writer.raw.execute(query, [None] * parameters).fetchall()

    read_whole = [row[3] for row in plan if re.fullmatch(r"SCAN (task|run|t|r|s|d|outbox)", row[3])]
    assert read_whole == []
