"""Contexts: servers that a person works with, by name, in one private file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tidemill.domain.errors import InvalidInput, NotFound, Problem

FILE_BYTES_MAX = 1_048_576
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
LOCAL = "local"  # what a server is called that has no host
HOST_CHARACTERS_MAX = 56
_ALLOWED = re.compile(r"[^\x00-\x1f\x7f]*")


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One server and how to speak to it; tokens are those of the last login."""

    server: str
    namespace: str | None = None
    api_key: str | None = None
    access_token: str | None = None
    refresh_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """What the file holds: contexts by name, and which one is used when none is named."""

    current: str | None = None
    by_name: Mapping[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """One context; NotFound lists the others."""
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "there is none yet"
            raise NotFound(f"no context is called {name!r} ({known}): `tidemill context add`")
        return self.by_name[name]

    def of_server(self, server: str) -> str | None:
        """The name of a context of that very server, the current one first; None without any."""
        same = [name for name, context in self.by_name.items() if context.server == server]
        return self.current if self.current in same else next(iter(same), None)

    def fresh_name(self, server: str) -> str:
        """A name for a new server: its host; where that is taken, with its port or a number."""
        url = urlsplit(server)
        host = _as_name(url.hostname or LOCAL)
        longer = _as_name(url.netloc.rpartition("@")[2]) if url.netloc else host
        numbered = (f"{longer}-{number}" for number in count(2))
        return next(name for name in chain((host, longer), numbered) if name not in self.by_name)

    def with_context(self, name: str, context: Context) -> Contexts:
        """With one more or changed; the first one becomes current."""
        _check_name(name)
        return replace(self, current=self.current or name, by_name={**self.by_name, name: context})

    def without(self, name: str) -> Contexts:
        """With one less."""
        self.named(name)
        rest = {other: context for other, context in self.by_name.items() if other != name}
        return Contexts(current=None if self.current == name else self.current, by_name=rest)

    def using(self, name: str) -> Contexts:
        """With another one current."""
        self.named(name)
        return replace(self, current=name)


class ContextFile:
    """The file itself; whoever changes it holds its lock, so that two commands do not collide."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> ContextFile:
        """Where this user keeps it: $XDG_CONFIG_HOME or ~/.config, tidemill/contexts.toml."""
        folder = environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
        return cls(Path(folder) / "tidemill" / "contexts.toml")

    def read(self) -> Contexts:
        """What the file holds; nothing when there is none."""
        try:
            with self.path.open("rb") as file:
                text = file.read(FILE_BYTES_MAX).decode()
            return _contexts(tomllib.loads(text))
        except FileNotFoundError:
            return Contexts()
        except (OSError, ValueError) as error:
            message = f"cannot be read: {error}; mend it, or remove it and log in again"
            raise _wrong(str(self.path), message) from error

    def write(self, contexts: Contexts) -> None:
        """Put new content in the place of the old at once; tokens are for this user only."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(_toml(contexts))
        fresh.replace(self.path)

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock for the block; False when somebody else has it: try again a little later.

        The kernel drops it when the process ends, however it ends.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self.path.with_name(f"{self.path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(descriptor)


def check_server(text: str) -> str:
    """The address of a server without a slash at its end; InvalidInput when it is none."""
    if text.startswith("unix:") and len(text) > len("unix:"):
        return text
    scheme, separator, host = text.partition("://")
    if scheme not in {"http", "https"} or not separator or not host.strip("/"):
        message = f"{text!r} is no server: write http://HOST:PORT, https://HOST or unix:PATH"
        raise _wrong("--server", message)
    return text.rstrip("/")


def _as_name(text: str) -> str:
    """What a name may have of it; an IPv6 address, for one, is no name. A number may follow."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip(".-")[:HOST_CHARACTERS_MAX] or LOCAL


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        message = f"{name!r} must be letters, digits, '.', '_' and '-', 63 at most"
        raise _wrong("name", message)


def _contexts(document: Mapping[str, Any]) -> Contexts:
    by_name = msgspec.convert(document.get("contexts", {}), dict[str, Context])
    return Contexts(current=document.get("current"), by_name=by_name)


def _toml(contexts: Contexts) -> str:
    lines = ["# Written by `tidemill context` and `tidemill login`. It may hold tokens."]
    if contexts.current is not None:
        lines.append(f"current = {_quoted(contexts.current)}")
    for name, context in contexts.by_name.items():
        lines += ["", f"[contexts.{_quoted(name)}]"]
        values: dict[str, str] = msgspec.to_builtins(context)
        lines += [f"{key} = {_quoted(value)}" for key, value in values.items() if value]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """JSON's way to write a text is also TOML's, as long as there are no control characters."""
    if not _ALLOWED.fullmatch(text):
        raise _wrong("context", "has a control character in it: remove it")
    return msgspec.json.encode(text).decode()


def _wrong(path: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=path, message=message, code="CONTEXT")])
