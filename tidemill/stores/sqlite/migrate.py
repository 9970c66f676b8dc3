"""Brings an SQLite file up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from tidemill.stores.migrator import Migration, left_to_apply, load_migrations
from tidemill.stores.sqlite.connection import mapped_errors

CREATE_MIGRATION = """
CREATE TABLE IF NOT EXISTS migration (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT
"""


def migrate(raw: sqlite3.Connection) -> list[str]:
    """Apply what is left, all or nothing, and name it; a second migrator waits, and finds nothing.

    SQLite knows no statement that needs to stand outside a transaction.
    """
    with mapped_errors():
        raw.execute("BEGIN IMMEDIATE")
        try:
            applied = _apply_all(raw)
            raw.execute("COMMIT")
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
    return applied


def migrations_left(raw: sqlite3.Connection) -> list[str]:
    """Names of what is left to apply; looks only."""
    with mapped_errors():
        tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migration'"
        known = raw.execute(tables).fetchone() is not None
        return [migration.title for migration in _left(raw, known)]


def _apply_all(raw: sqlite3.Connection) -> list[str]:
    raw.execute(CREATE_MIGRATION)
    left = _left(raw, known=True)
    for migration in left:
        for statement in _statements(migration.text):
            raw.execute(statement)
        _record(raw, migration)
    return [migration.title for migration in left]


def _left(raw: sqlite3.Connection, known: bool) -> Sequence[Migration]:
    rows = raw.execute("SELECT number, checksum FROM migration").fetchall() if known else []
    return left_to_apply(load_migrations("tidemill.stores.sqlite"), dict(rows))


def _record(raw: sqlite3.Connection, migration: Migration) -> None:
    raw.execute(
        "INSERT INTO migration (number, name, checksum) VALUES (?, ?, ?)",
        (migration.number, migration.name, migration.checksum),
    )


def _statements(text: str) -> Iterator[str]:
    """One by one: `executescript` would commit before the first."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), "a migration ends with a semicolon"
