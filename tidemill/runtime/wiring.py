"""From addresses to stores and buses: the only place that knows which there are."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tidemill.domain.errors import Conflict, InvalidInput, NotFound, Problem
from tidemill.ports.broker import Broker
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.secrets import Sealing
from tidemill.ports.store import Store
from tidemill.runtime.addresses import DEFAULT_STORE, StoreAddress, scheme_of
from tidemill.runtime.reaching import Reach, Unreachable, without_password
from tidemill.runtime.settings import Settings
from tidemill.stores.errors import StoreRefused

SQLITE_BEGINNING = b"SQLite format 3\0"
MEMORY = "memory:"
DEFAULT_FOLDER = Path(DEFAULT_STORE).parent.name


def check_place(path: Path, *, make: bool = False) -> None:
    """Refuse a path that cannot be a SQLite file, before anything is put beside it."""
    try:
        if make:
            _make_folder(path)
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


def _make_folder(path: Path) -> None:
    """Make the folder of a default store; of another, a name that is not there is a mistake."""
    folder = path.parent
    if not folder.exists() and folder.name != DEFAULT_FOLDER:
        raise _wrong_place(path, f"cannot be made: there is no folder {folder}; make it first")
    folder.mkdir(mode=0o700, exist_ok=True)


def _wrong_place(path: Path, what: str) -> InvalidInput:
    return InvalidInput([Problem(path="--store", message=f"{path} {what}", code="store")])


async def open_store(address: StoreAddress, clock: Clock, reach: Reach | None = None) -> Store:
    """Connect to a store to read and write; a SQLite file must be owned by this process."""
    if address.path is None:
        return await _open_postgres(address, reach or at_once(clock))
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
        return await _open_postgres(address, at_once(clock))
    check_place(address.path)
    if not address.path.exists():
        raise NotFound(f"there is no store at {address.path} yet: `tidemill run` creates it")
    from tidemill.stores.sqlite.store import SqliteStore

    return SqliteStore.open_reader(str(address.path), clock)


async def _open_postgres(address: StoreAddress, reach: Reach) -> Store:
    dsn = address.dsn
    assert dsn is not None
    try:
        from tidemill.stores.postgres.store import PostgresStore
    except ImportError as error:
        raise _needs_extra("--store", "PostgreSQL", "postgres") from error
    try:
        return await reach.until("store", dsn, lambda: PostgresStore.connect(dsn))
    except StoreRefused as error:
        text = f"store {address} refuses: {without_password(error, dsn)}"
        raise Unreachable(text) from error
    except ValueError:  # it quotes what it cannot read, which may be a piece of the password
        message = f"{address} cannot be read: write %2F for / in a password, %40 for @, %23 for #"
        raise InvalidInput([Problem(path="--store", message=message, code="store")]) from None


def at_once(clock: Clock) -> Reach:
    """Try once, and tell nobody."""
    return Reach(clock, 0, lambda _: None)


async def check_schema(store: Store, address: StoreAddress) -> None:
    """Conflict when migrations are missing that this release needs."""
    left = await store.migrations_left()
    if left:
        names = ", ".join(left)
        raise Conflict(
            f"the schema of {address} lacks {names}: "
            "run `tidemill migrate` with the same --store first"
        )


def bus_url(settings: Settings) -> str:
    """The bus of a process: by default the PostgreSQL of its store, or its own memory."""
    return settings.bus or settings.store.dsn or MEMORY


def bus_of(settings: Settings) -> Bus:
    """The bus of a process; what is wrong with it is said of the setting that names it."""
    return open_bus(bus_url(settings), "--bus" if settings.bus else "--store")


def open_bus(url: str, setting: str = "--bus") -> Bus:
    """The bus behind a URL. One that is down costs time only, so nothing connects here."""
    match scheme_of(url):
        case "memory":
            from tidemill.buses.memory import MemoryBus

            return MemoryBus()
        case "postgresql" | "postgres":
            return _postgres_bus(url, setting)
        case _:
            from tidemill.buses.broker_bus import BrokerBus

            return BrokerBus(open_broker(url, setting))


def _postgres_bus(url: str, setting: str) -> Bus:
    try:
        from tidemill.buses.postgres import PostgresBus
    except ImportError as error:
        raise _needs_extra(setting, "PostgreSQL", "postgres") from error
    return PostgresBus(url)


def open_broker(url: str, setting: str = "--via") -> Broker:
    """The broker behind a URL; it connects when it is first used."""
    if scheme_of(url) == "kafka":
        return _import_broker(setting, "Kafka", "kafka")(url)
    return _import_broker(setting, "Redis", "redis")(url)


def open_sealing(key_file: Path | None, entropy: Entropy) -> Sealing | None:
    """What seals secrets in the store; None without a key."""
    if key_file is None:
        return None
    try:
        from tidemill.credentials.sealing import AesSealing, read_sealing_key
    except ImportError as error:
        raise _needs_extra("--secrets-key-file", "it", "secrets") from error
    return AesSealing(read_sealing_key(key_file), entropy)


def _import_broker(setting: str, product: str, extra: str) -> Callable[[str], Broker]:
    try:
        if extra == "kafka":
            from tidemill.buses.kafka import KafkaBroker

            return KafkaBroker
        from tidemill.buses.redis import RedisBroker
    except ImportError as error:
        raise _needs_extra(setting, product, extra) from error
    return RedisBroker


def _needs_extra(setting: str, product: str, extra: str) -> InvalidInput:
    message = f"{product} needs an extra: pip install 'tidemill[{extra}]'"
    return InvalidInput([Problem(path=setting, message=message, code="extra")])
