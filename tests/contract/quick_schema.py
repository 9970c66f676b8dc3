"""A schema for one test, all migrations at once: nobody works on it yet, so none must wait."""

from __future__ import annotations

from functools import lru_cache

import asyncpg

from tidemill.stores.migrator import load_migrations
from tidemill.stores.postgres.migrate import CREATE_MIGRATION


async def make_schema(dsn: str, schema: str) -> None:
    """The same as `migrate` leads to, as test_migrations makes sure."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            f"CREATE SCHEMA {schema}; SET search_path TO {schema}; {_script()}"
        )
    finally:
        await connection.close()


@lru_cache(maxsize=1)
def _script() -> str:
    migrations = load_migrations("tidemill.stores.postgres")
    texts = [migration.text.replace(" CONCURRENTLY", "") for migration in migrations]
    rows = (f"({each.number}, '{each.name}', '{each.checksum}')" for each in migrations)
    return "\n;\n".join(
        [CREATE_MIGRATION, *texts, "INSERT INTO migration VALUES " + ", ".join(rows)]
    )
