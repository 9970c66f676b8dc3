"""One SQLite connection: opened, asked by query name, its errors told in the domain's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import msgspec

from tidemill.domain.errors import IllegalTransition, TidemillError, Unavailable
from tidemill.domain.identifiers import Moment
from tidemill.stores.errors import StoreRefused
from tidemill.stores.named_queries import load_queries, takes_many, with_rows
from tidemill.stores.statements import Row

MEMORY = ":memory:"
SET_PATIENCE = "PRAGMA busy_timeout = 1000"
QUERIES: Mapping[str, str] = load_queries("tidemill.stores.sqlite")

LAST_READY_NO = """
SELECT max(
    coalesce((SELECT max(ready_no) FROM task INDEXED BY task_ready
        WHERE state = 'READY' AND hold IS NULL), 0),
    coalesce((SELECT max(ready_no) FROM task INDEXED BY task_ready_alone
        WHERE state = 'READY' AND hold = 'alone'), 0),
    coalesce((SELECT max(ready_no) FROM task INDEXED BY task_granted
        WHERE state IN ('RUNNING', 'CANCELLING')), 0)
)
"""
"""Places in lanes are compared among tasks that are READY or, handed back, will be so again: they
may begin anew behind these.
"""

_REFUSED = frozenset(
    {
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_TOOBIG,
    }
)
_encode = msgspec.json.Encoder().encode

SHARES = (50, 10, 1)
"""So many rows are written at once: to begin a statement takes a third of the time of one row."""

# The driver asks around who could adapt a value, each time that it is neither a number nor a text:
# a fifth of what it takes to write a row. These are what they are.
_nothing: dict[None, None] = {}
sqlite3.register_adapter(type(None), _nothing.get)
sqlite3.register_adapter(bytes, bytes)


def connect_writer(path: str) -> sqlite3.Connection:
    """The connection of the file's owner."""
    with mapped_errors():
        raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute(SET_PATIENCE)
        # Pages that change again and again are moved into the file once for all these changes.
        raw.execute("PRAGMA wal_autocheckpoint = 8000")
        raw.execute("PRAGMA journal_size_limit = 67108864")
        raw.execute("PRAGMA cache_size = -16384")
    return raw


def connect_reader(path: str) -> sqlite3.Connection:
    """A connection that cannot write, whoever owns the file."""
    with mapped_errors():
        uri = Path(path).absolute().as_uri() + "?mode=ro"
        raw = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        raw.execute(SET_PATIENCE)
        raw.execute("PRAGMA query_only = ON")
    return raw


class Connection:
    """Runs named queries, blocking. Knows `now_micros()` and, as a writer, places in lanes."""

    def __init__(self, raw: sqlite3.Connection, now: Callable[[], Moment]) -> None:
        self.raw = raw
        self._next_place: int | None = None
        self._patient = True  # as it was opened
        raw.create_function("now_micros", 0, now)
        raw.create_function("next_ready_no", 0, lambda: self._take_places(1))
        raw.create_function("take_ready_nos", 1, self._take_places)

    def fetch(self, name: str, *values: object) -> list[Row]:
        """Rows of a query; a list among the values travels as JSON."""
        with mapped_errors():
            return self.raw.execute(QUERIES[name], [_plain(value) for value in values]).fetchall()

    def execute(self, name: str, *values: object) -> int:
        """Rows touched by a command."""
        with mapped_errors():
            return self.raw.execute(QUERIES[name], [_plain(value) for value in values]).rowcount

    def execute_batch(self, name: str, batch: Sequence[Row]) -> None:
        """Run a command for each row; one that can take many rows is run with many at once."""
        query = QUERIES[name]
        with mapped_errors():
            if not takes_many(query):
                self.raw.executemany(query, batch)
                return
            for share in _shares(batch):
                widened = with_rows(query, len(share))
                self.raw.execute(widened, list(chain.from_iterable(share)))

    def begin(self) -> None:
        """Become the one that writes, before anything is read."""
        self.be_patient()
        with mapped_errors():
            self.raw.execute("BEGIN IMMEDIATE")
            self._look_for_last_place()

    def begin_at_once(self) -> bool:
        """The same without waiting; False when somebody else writes."""
        with mapped_errors():
            if self._patient:
                self.raw.execute("PRAGMA busy_timeout = 0").close()
                self._patient = False
            try:
                self.raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                    return False
                raise
            self._look_for_last_place()
        return True

    def be_patient(self) -> None:
        """Wait for locks of others, until the next time that something is done at once."""
        if not self._patient:
            with mapped_errors():
                self.raw.execute(SET_PATIENCE).close()
            self._patient = True

    def rollback(self) -> None:
        """Undo what is open; SQLite may have done so by itself, after an error."""
        with mapped_errors():
            if self.raw.in_transaction:
                self.raw.execute("ROLLBACK")

    def close(self) -> None:
        """Let go of the file."""
        self.raw.close()

    def _look_for_last_place(self) -> None:
        if self._next_place is None:
            ((last,),) = self.raw.execute(LAST_READY_NO)
            self._next_place = last + 1

    def _take_places(self, count: int) -> int:
        """The first of so many places in a row."""
        assert self._next_place is not None, "a place in a lane is given inside a transaction"
        first, self._next_place = self._next_place, self._next_place + count
        return first


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Turn what sqlite3 raises into what the ports promise."""
    try:
        yield
    except sqlite3.Error as error:
        raise _told(error) from error
    except OverflowError as error:
        raise StoreRefused(f"SQLite: {error}") from error


def _told(error: sqlite3.Error) -> TidemillError:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
        return IllegalTransition(str(error))
    # Errors without a code are misuse of the module (a closed connection, a bad parameter).
    if code is not None and code & 0xFF not in _REFUSED:
        return Unavailable(f"SQLite: {error}")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return Unavailable(f"SQLite: {error}")
    return StoreRefused(f"SQLite: {error}")


def _shares(batch: Sequence[Row]) -> Iterator[Sequence[Row]]:
    begin = 0
    for size in SHARES:
        while begin + size <= len(batch):
            yield batch[begin : begin + size]
            begin += size


def _plain(value: object) -> object:
    return _encode(value).decode() if isinstance(value, list) else value
