"""The contract of migrating."""

from __future__ import annotations

import asyncio

import pytest

from tests.builders import a_task
from tests.contract.given import claimed, given
from tidemill.domain.errors import Conflict
from tidemill.ports.store import Store
from tidemill.stores.migrator import OUTSIDE, Migration, left_to_apply, load_migrations

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


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_migrations_are_numbered_without_gaps(dialect: str) -> None:
    migrations = load_migrations(f"tidemill.stores.{dialect}")

    assert [migration.number for migration in migrations] == [1, 2, 3]
    assert all(migration.text.strip() for migration in migrations)


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
