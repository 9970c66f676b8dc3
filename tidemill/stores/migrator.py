"""Numbered migrations: what there is, what was applied, what is left to do.

Each store applies them in its own way, under a lock of its own, and records number, name and
checksum in the table `migration`. The schema only goes forward.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from tidemill.domain.errors import Conflict

OUTSIDE = "-- tidemill: outside transaction"
"""As a line of its own: the statements of a migration run one by one, each by itself.

For what a transaction does not allow, such as CREATE INDEX CONCURRENTLY. When it breaks off it is
run again from its beginning, so every statement must bear that: DROP INDEX CONCURRENTLY IF EXISTS
comes before. Each statement ends with a semicolon at the end of a line.
"""


class Migration(NamedTuple):
    """One step forward of the schema."""

    number: int
    name: str
    text: str
    checksum: str

    @property
    def title(self) -> str:
        """As its file is called."""
        return f"{self.number:04}_{self.name}"

    @property
    def statements(self) -> list[str]:
        """What to run at once: the whole text, or its single statements where it asks for that."""
        lines = self.text.splitlines()
        if OUTSIDE not in lines:
            return [self.text]
        parts = "\n".join(line for line in lines if not line.startswith("--")).split(";\n")
        return [part.strip().removesuffix(";") for part in parts if part.strip()]

    @property
    def is_outside(self) -> bool:
        """Whether it must not run in a transaction."""
        return OUTSIDE in self.text.splitlines()


def load_migrations(package: str) -> list[Migration]:
    """The migrations of a package, in order; their numbers have no gap."""
    folder = files(package) / "migrations"
    named = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".sql"))
    migrations = [_read(name, file.read_text(encoding="utf-8")) for name, file in named]
    numbers = [migration.number for migration in migrations]
    assert numbers == list(range(1, len(numbers) + 1)), f"{package}: migrations {numbers} have gaps"
    return migrations


def _read(file_name: str, text: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, text, hashlib.sha256(text.encode()).hexdigest())


def left_to_apply(
    migrations: Sequence[Migration], applied: Mapping[int, str]
) -> Sequence[Migration]:
    """Those not applied yet; Conflict when an applied one reads differently today.

    Numbers beyond the last known one belong to a later release, whose schema this one can use.
    """
    for migration in migrations:
        checksum = applied.get(migration.number, migration.checksum)
        if checksum != migration.checksum:
            raise Conflict(
                f"migration {migration.number} ({migration.name}) was applied with other content:"
                " use the release that made this database, or a later one"
            )
    return [migration for migration in migrations if migration.number not in applied]
