"""From addresses to stores: the only place that knows which databases there are."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tidemill.domain.errors import InvalidInput, NotFound, Problem
from tidemill.ports.clock import Clock
from tidemill.ports.store import Store
from tidemill.runtime.config import StoreAddress

SQLITE_BEGINNING = b"SQLite format 3\0"


def check_place(path: Path, *, make: bool = False) -> None:
    """Refuse a path that cannot be a SQLite file, before anything is put beside it."""
    try:
        if make:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_dir():
            raise _wrong_place(path, "is a folder; name a file in it")
        if not path.exists():
            return
        with path.open("rb") as file:
            beginning = file.read(len(SQLITE_BEGINNING))
    except OSError as error:
        raise _wrong_place(path, f"cannot be used: {error.strerror} ({error.filename})") from error
    if beginning not in {b"", SQLITE_BEGINNING}:
        raise _wrong_place(path, "is a file of another kind, not a store; name another one")


def _wrong_place(path: Path, what: str) -> InvalidInput:
    return InvalidInput([Problem(path="--store", message=f"{path} {what}", code="store")])


async def open_store(address: StoreAddress, clock: Clock) -> Store:
    """Connect to a store to read and write; a SQLite file must be owned by this process."""
    if address.path is None:
        return await _open_postgres(address)
    from tidemill.stores.sqlite.store import SqliteStore

    # Inputs and results are nobody else's business; SQLite gives its log the same permissions.
    os.close(os.open(address.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return SqliteStore(str(address.path), clock)


@asynccontextmanager
async def reading(address: StoreAddress, clock: Clock) -> AsyncIterator[Store]:
    """A store for commands that only look: on SQLite, never in the way of its owner."""
    store = await _open_to_read(address, clock)
    try:
        yield store
    finally:
        await store.close()


async def _open_to_read(address: StoreAddress, clock: Clock) -> Store:
    if address.path is None:
        return await _open_postgres(address)
    check_place(address.path)
    if not address.path.exists():
        raise NotFound(f"there is no store at {address.path} yet: `tidemill run` creates it")
    from tidemill.stores.sqlite.store import SqliteStore

    return SqliteStore.open_reader(str(address.path), clock)


async def _open_postgres(address: StoreAddress) -> Store:
    assert address.dsn is not None
    try:
        from tidemill.stores.postgres.store import PostgresStore
    except ImportError as error:
        message = "PostgreSQL needs an extra: pip install 'tidemill[postgres]'"
        raise InvalidInput([Problem(path="store", message=message, code="extra")]) from error
    return await PostgresStore.connect(address.dsn)
