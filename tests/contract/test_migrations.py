"""The contract of migrating."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import a_task
from tests.contract.given import claimed, given
from tidemill.domain.errors import Conflict
from tidemill.ports.store import Store
from tidemill.stores.migrator import OUTSIDE, Migration, left_to_apply, load_migrations
from tidemill.stores.postgres.store import PostgresStore

FIRST = Migration(1, "engine", "CREATE TABLE a", "sum-1")
SECOND = Migration(2, "more", "CREATE TABLE b", "sum-2")


async def test_migrating_again_changes_nothing(store: Store) -> None:
    task = a_task()
    await given(store, task)

    await store.migrate()

    assert await claimed(store) == [task]


async def test_two_who_migrate_at_once_do_it_once(store: Store) -> None:
    async with asyncio.TaskGroup() as migrators:
        for _ in range(3):
            migrators.create_task(store.migrate())

    assert await claimed(store) == []


def test_only_what_was_not_applied_is_left() -> None:
    assert left_to_apply([FIRST, SECOND], {}) == [FIRST, SECOND]
    assert left_to_apply([FIRST, SECOND], {1: "sum-1"}) == [SECOND]


def test_a_schema_of_a_later_release_is_good_enough() -> None:
    assert left_to_apply([FIRST], {1: "sum-1", 2: "sum-2"}) == []


def test_a_migration_that_reads_differently_now_is_refused() -> None:
    with pytest.raises(Conflict, match="migration 1"):
        left_to_apply([FIRST], {1: "another sum"})


def test_migrations_are_numbered_without_gaps_and_named_alike_in_both_dialects() -> None:
    sqlite = load_migrations("tidemill.stores.sqlite")
    postgres = load_migrations("tidemill.stores.postgres")

    assert [each.title for each in sqlite] == [each.title for each in postgres]
    assert [each.number for each in sqlite] == list(range(1, len(sqlite) + 1))
    assert all(each.text.strip() for each in (*sqlite, *postgres))


async def test_a_store_says_what_its_schema_lacks(store: Store) -> None:
    told: list[str] = []

    await store.migrate(told.append)

    assert await store.migrations_left() == []
    assert told == []


def test_a_migration_asks_to_stand_outside_a_transaction() -> None:
    text = f"{OUTSIDE}\n-- Why; it matters.\nDROP INDEX a;\nCREATE INDEX a\n    ON b (c);\n"

    outside, inside = Migration(1, "a", text, ""), Migration(2, "b", "CREATE TABLE d;\n", "")

    assert outside.is_outside
    assert outside.statements == ["DROP INDEX a", "CREATE INDEX a\n    ON b (c)"]
    assert not inside.is_outside
    assert inside.statements == ["CREATE TABLE d;\n"]


LOOK = """
SELECT indexname AS name, replace(indexdef, schemaname || '.', '') AS what
FROM pg_indexes WHERE schemaname = $1
UNION ALL
SELECT table_name || '.' || column_name, data_type || ' ' || is_nullable
    || coalesce(' ' || replace(column_default, $1, ''), '')
FROM information_schema.columns WHERE table_schema = $1
UNION ALL
SELECT conrelid::REGCLASS::TEXT || '.' || conname, pg_get_constraintdef(c.oid)
FROM pg_constraint AS c JOIN pg_namespace AS n ON n.oid = c.connamespace WHERE n.nspname = $1
ORDER BY name, what
"""


async def test_migrating_leads_to_the_schema_that_the_other_tests_work_on(
    postgres_dsn: str, postgres: PostgresStore
) -> None:
    migrated = PostgresStore(postgres_dsn, schema="test_migrated")
    await migrated.migrate()

    found: list[list[tuple[str, str]]] = []
    for store, schema in ((migrated, "test_migrated"), (postgres, postgres._schema)):
        pool = await store._pool.get()
        rows = await pool.fetch(LOOK, schema)
        found.append([(row[0].removeprefix(f"{schema}."), row[1]) for row in rows])
    await migrated.close()

    assert len(found[0]) > 100
    assert found[0] == found[1]
