"""Brings an SQLite file up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from tidemill.stores.migrator import Migration, left_to_apply, load_migrations
from tidemill.stores.sqlite.connection import mapped_errors

CREATE_MIGRATION = """
CREATE TABLE IF NOT EXISTS migration (
    number   INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT
"""


def migrate(raw: sqlite3.Connection) -> None:
    """Apply what is left, all or nothing; a second migrator waits, then finds nothing to do."""
    with mapped_errors():
        raw.execute("BEGIN IMMEDIATE")
        try:
            _apply_all(raw)
            raw.execute("COMMIT")
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")


def _apply_all(raw: sqlite3.Connection) -> None:
    raw.execute(CREATE_MIGRATION)
    applied = dict(raw.execute("SELECT number, checksum FROM migration").fetchall())
    for migration in left_to_apply(load_migrations("tidemill.stores.sqlite"), applied):
        for statement in _statements(migration.text):
            raw.execute(statement)
        _record(raw, migration)


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
