"""Point 43: who serves need not own the schema, and who works sees no database at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.identity.stage import Clock, opened_house
from tidemill.stores.postgres.store import PostgresStore

SCHEMA = "identity_by_others"
APP = "mill_app"


@pytest.fixture
async def serving_store(postgres_dsn: str) -> AsyncIterator[PostgresStore]:
    """The schema of somebody else, seen by a role that may read and write rows."""
    owner = PostgresStore(postgres_dsn, schema=SCHEMA)
    await owner.migrate()
    await owner.close()
    admin = await asyncpg.connect(postgres_dsn)
    for statement in (
        f"DROP ROLE IF EXISTS {APP}",
        f"CREATE ROLE {APP} LOGIN PASSWORD 'app'",
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {APP}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {APP}",
        f"REVOKE UPDATE, DELETE ON {SCHEMA}.audit FROM {APP}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {APP}",
    ):
        await admin.execute(statement)
    parts = urlsplit(postgres_dsn)
    place = f"{APP}:app@{parts.netloc.rpartition('@')[2]}"
    store = PostgresStore(parts._replace(netloc=place).geturl(), schema=SCHEMA)
    yield store
    await store.close()
    await admin.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    await admin.execute(f"DROP ROLE {APP}")
    await admin.close()


async def test_point_43_a_role_without_ddl_serves_and_cannot_change_the_schema(
    serving_store: PostgresStore, clock: Clock
) -> None:
    async with opened_house(serving_store, clock) as house:
        await house.bootstrap()
        assert (await house.got(house.root, "GET", "/v1/audit/verify"))["holds"]

    pool = await serving_store._pool.get()
    async with pool.acquire() as connection:
        for statement in (
            "CREATE TABLE mine (id INTEGER)",
            "ALTER TABLE account ADD COLUMN mine TEXT",
            "DROP TRIGGER audit_stays ON audit",
            "DELETE FROM audit",
            "UPDATE audit SET actor = 'x'",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
