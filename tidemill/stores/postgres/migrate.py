"""Brings a PostgreSQL schema up to date."""

from __future__ import annotations

from tidemill.stores.migrator import Migration, left_to_apply, load_migrations
from tidemill.stores.postgres.connection import PooledConnection

# One migrator of a schema at a time; the lock ends with the transaction.
LOCK_SCHEMA = """
SELECT set_config('lock_timeout', '5000', TRUE), set_config('statement_timeout', '0', TRUE),
    pg_advisory_xact_lock(hashtextextended('tidemill migration of ' || $1, 0))
"""
CREATE_MIGRATION = """
CREATE TABLE IF NOT EXISTS migration (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    checksum TEXT NOT NULL
)
"""


async def migrate(connection: PooledConnection, schema: str | None) -> None:
    """Apply what is left, all or nothing; a second migrator waits, then finds nothing to do."""
    async with connection.transaction():
        await connection.execute(LOCK_SCHEMA, schema or "")
        if schema is not None:
            await _create_schema(connection, schema)
        await connection.execute(CREATE_MIGRATION)
        rows = await connection.fetch("SELECT number, checksum FROM migration")
        applied = {row[0]: row[1] for row in rows}
        for migration in left_to_apply(load_migrations("tidemill.stores.postgres"), applied):
            await connection.execute(migration.text)
            await _record(connection, migration)


async def _create_schema(connection: PooledConnection, schema: str) -> None:
    # The server quotes the name: identifiers cannot be parameters.
    statement = await connection.fetchval(
        "SELECT format('CREATE SCHEMA IF NOT EXISTS %I', $1::TEXT)", schema
    )
    await connection.execute(statement)


async def _record(connection: PooledConnection, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO migration (number, name, checksum) VALUES ($1, $2, $3)",
        migration.number,
        migration.name,
        migration.checksum,
    )
