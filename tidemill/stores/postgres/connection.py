"""Connections to PostgreSQL: how they are set up, and their errors told in the domain's words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute
from asyncpg.pgproto.pgproto import UUID

from tidemill.domain.errors import CommitUnknown, IllegalTransition, TidemillError, Unavailable
from tidemill.stores.errors import StoreRefused

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
PooledConnection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Greet: TypeAlias = Callable[[Connection], Awaitable[None]]

ACQUIRE_SECONDS = 5.0
RELEASE_SECONDS = 1.0
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 15.0  # for a network that swallows answers; the server gives up after 10
STATEMENTS_CACHED = 200

SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
NO_UUID = b"\xff" * 16
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUIDS = re.compile(rf"(?:{_UUID.pattern}(?:,|$))*(?<!,)", re.ASCII)
ILLEGAL_MOVE = "TM001"  # raised by the triggers, see the migrations
_PASSING_CLASSES = frozenset({"08", "40", "53", "55", "57", "58", "XX"})
_PASSING_STATES = frozenset({"25006", "25P02", "25P03", "26000"})
_LOST_CLASSES = frozenset({"08", "57"})

SETTINGS: Mapping[str, str] = {
    "application_name": "tidemill",
    # A process that is paused or cut off must not hold the others up.
    "idle_in_transaction_session_timeout": "5000",
    "lock_timeout": "1000",
    "statement_timeout": "10000",
    "default_transaction_isolation": "read committed",
    # Every query of the engine has an index to go by. On fresh tables without statistics the
    # planner would rather read them whole and join batches by hash: see tests/contract/test_plans.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    # So a plan is right for every batch, and need not be made anew for each.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}


async def open_pool(
    dsn: str, size_max: int, schema: str | None, greet: Greet | None = None
) -> Pool:
    """A pool of connections, made when they are needed; each new one is handed to `greet`.

    A server that only reads, such as a replica, is no server for us: what it shows is late.
    """

    async def set_up(connection: Connection) -> None:
        await _set_up(connection)
        if greet is not None:
            await greet(connection)

    settings = dict(SETTINGS)
    if schema is not None:
        assert SCHEMA_NAME.fullmatch(schema), f"{schema!r} is no plain name for a schema"
        settings["search_path"] = schema
    with mapped_errors():
        return await asyncpg.create_pool(
            dsn,
            min_size=0,
            max_size=size_max,
            init=set_up,
            reset=_leave_as_it_is,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            statement_cache_size=STATEMENTS_CACHED,
            max_cached_statement_lifetime=0,
            server_settings=settings,
            target_session_attrs=SessionAttribute.read_write,
        )


async def _set_up(connection: Connection) -> None:
    await connection.set_type_codec(
        "uuid", schema="pg_catalog", encoder=_uuid_bytes, decoder=_uuid_text, format="binary"
    )


async def _leave_as_it_is(_connection: Connection) -> None:
    """Spare a round trip: nobody here changes settings or takes advisory locks for long."""


def _uuid_bytes(text: str) -> bytes:
    """A text that is no UUID stands for the greatest one, which no row can have: see the CHECKs.

    So what a person mistypes is not found, and what a program gets wrong is not stored.
    """
    try:
        uuid = UUID(text)
    except ValueError:
        return NO_UUID
    return uuid.bytes if str(uuid) == text else NO_UUID  # other ways to write it are not ours


def joined_ids(ids: Collection[str]) -> str:
    """Ids as one text with commas, which costs a driver far less than as many elements of an array.

    For what is no UUID the greatest one stands, as above.
    """
    text = ",".join(ids)
    if len(text) == max(0, 37 * len(ids) - 1) and _UUIDS.fullmatch(text):
        return text
    return ",".join(one if _UUID.fullmatch(one) else str(UUID(NO_UUID)) for one in ids)


def _uuid_text(data: bytes) -> str:
    return str(UUID(data))


@contextmanager
def mapped_errors(*, commit: bool = False) -> Iterator[None]:
    """Turn what asyncpg raises into what the ports promise.

    During a commit, an error that does not come from the server's judgement leaves the result open.
    """
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _told(error, commit) from error
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise Unavailable("PostgreSQL: the server only reads; name the primary") from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, EOFError) as error:
        if isinstance(error, ValueError):  # a value that does not fit the type of its column
            raise StoreRefused(f"PostgreSQL: {error}") from error
        raise _lost(error, commit) from error


def _told(error: asyncpg.PostgresError, commit: bool) -> TidemillError:
    state = error.sqlstate or ""
    if state == ILLEGAL_MOVE:
        return IllegalTransition(str(error))
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        return Unavailable(f"PostgreSQL: {error}")
    if isinstance(error, asyncpg.UndefinedTableError):
        return StoreRefused(f"PostgreSQL: nothing has been run on this database yet ({error})")
    if state[:2] in _LOST_CLASSES:
        return _lost(error, commit)
    if state[:2] in _PASSING_CLASSES or state in _PASSING_STATES:
        return Unavailable(f"PostgreSQL: {error}")
    return StoreRefused(f"PostgreSQL: {error}")


def _lost(error: Exception, commit: bool) -> Unavailable:
    message = f"PostgreSQL: {str(error) or type(error).__name__}"
    return CommitUnknown(message) if commit else Unavailable(message)
