"""Where things are: stores, endpoints to listen on or connect to, and whether others reach them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tidemill.domain.urls import mask_url

DEFAULT_STORE = ".tidemill/tidemill.db"
BUS_SCHEMES = ("memory", "postgresql", "postgres", "redis", "rediss", "kafka")
BROKER_SCHEMES = ("redis", "rediss", "kafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """Where durable state lives: exactly one of a SQLite file and a PostgreSQL address."""

    path: Path | None = None
    dsn: str | None = field(default=None, repr=False)  # it may hold a password

    def __str__(self) -> str:
        """As it may be shown: without its password."""
        return str(self.path) if self.path is not None else mask_url(self.dsn or "")


class Endpoint(NamedTuple):
    """A host and a port; IPv6 addresses stand without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        import ipaddress

        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_store(text: str) -> StoreAddress:
    """Read `sqlite:///path`, a plain path or `postgresql://…`; ValueError says what is wrong."""
    scheme, separator, rest = text.partition("://")
    if not separator and _ALMOST_URL.search(text):  # not quoted: it may hold a password
        raise ValueError(f"is neither a path nor a URL; {_STORE_FIX}")
    if not separator:
        return _file(text, text)
    match scheme:
        case "sqlite":
            return _file(text, rest.removeprefix("/"))
        case "postgresql" | "postgres":
            return StoreAddress(dsn=text)
        case _:
            raise ValueError(f"{scheme}:// is not a store that Tidemill knows; {_STORE_FIX}")


_ALMOST_URL = re.compile(r"^(postgres|postgresql|sqlite):|password=", re.IGNORECASE)
_STORE_FIX = "use a path, sqlite:///path (sqlite:////path for an absolute one) or postgresql://…"


def _file(text: str, path: str) -> StoreAddress:
    if not path or path.endswith("/"):
        raise ValueError(f"{text!r} names no file; {_STORE_FIX}")
    return StoreAddress(path=Path(path).expanduser().absolute())


def parse_endpoint(text: str) -> Endpoint:
    """Read `HOST:PORT` or `[HOST]:PORT`; ValueError says what is wrong."""
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or not port.isdecimal() or int(port) > 65_535 or (":" in bare and bare == host):
        raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:7300 or [::1]:7300")
    return Endpoint(bare, int(port))


def is_private(address: str) -> bool:
    """Whether a worker's way to `unix:PATH` or `HOST:PORT` stays on this machine."""
    return address.startswith("unix:") or parse_endpoint(address).is_loopback


def scheme_of(url: str) -> str:
    """`kafka` of `kafka://host`, `memory` of `memory:`."""
    return url.partition(":")[0]
