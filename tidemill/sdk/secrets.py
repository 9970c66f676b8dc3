"""Secrets by name, as a task gets them: from the environment, a file, or handed over by the engine.

Only who runs a task has one of these; the values are in no definition, input or result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tidemill.domain.errors import TidemillError
from tidemill.domain.workflow import NAME_CHARACTERS_MAX, NAME_PATTERN

VARIABLE_PREFIX = "TIDEMILL_SECRET_"
VALUE_BYTES_MAX = 32 * 1024
FILES_MAX = 1_000
NOT_FOUND = "it has none of this name"
NOT_OVER_BROKER = "its secrets do not travel over a broker"

_NAME = re.compile(NAME_PATTERN)


class SecretMissing(TidemillError):
    """A task asks for a secret that is in none of the places where it was looked for."""


class SecretSources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the secrets of one attempt come from; the first place that has one decides."""

    environment: dict[str, str] = {}  # by name of the variable
    directory: str | None = None
    handed: dict[str, str] = {}  # from the store, by name
    trouble: str = NOT_FOUND  # why the store's secret is not among them
    task_token: str = ""  # of the attempt itself; empty when it has none

    def __repr__(self) -> str:
        return "SecretSources(***)"

    def find(self, name: str) -> str:
        """The value; SecretMissing names the places where it is not."""
        check_name(name)
        variable = variable_of(name)
        if variable in self.environment:
            return self.environment[variable]
        found = None if self.directory is None else _read(Path(self.directory) / name)
        if found is not None:
            return found
        if name in self.handed:
            return self.handed[name]
        file = f"the file {Path(self.directory) / name}" if self.directory else "no --secrets-dir"
        places = f"the variable {variable}, {file}, the store ({self.trouble})"
        raise SecretMissing(f"secret {name!r} is missing; looked for in {places}")

    def values(self) -> Iterator[str]:
        """Every value that could be asked for."""
        yield from self.environment.values()
        yield from self.handed.values()
        yield self.task_token
        if self.directory is not None:
            yield from _values_in(Path(self.directory))


class Secrets:
    """The secrets of one attempt; tells which were found, so that they can be masked."""

    def __init__(
        self, sources: SecretSources, on_found: Callable[[str], None] = lambda _: None
    ) -> None:
        self.sources = sources
        self._on_found = on_found

    def find(self, name: str) -> str:
        """The value of a secret."""
        value = self.sources.find(name)
        self._on_found(value)
        return value

    def task_token(self) -> str | None:
        """The token of the attempt; None when it has none."""
        token = self.sources.task_token
        self._on_found(token)
        return token or None

    def expect_all(self) -> None:
        """Somebody is given the sources themselves: any value may show up."""
        for value in self.sources.values():
            self._on_found(value)


def variable_of(name: str) -> str:
    """The variable that may hold a secret: `db-password` is in TIDEMILL_SECRET_DB_PASSWORD."""
    return VARIABLE_PREFIX + name.upper().replace("-", "_").replace(".", "_")


def secret_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold secrets."""
    return {name: text for name, text in environ.items() if name.startswith(VARIABLE_PREFIX)}


def check_name(name: object) -> None:
    """SecretMissing when nothing can have this name."""
    if not (
        isinstance(name, str)
        and len(name) <= NAME_CHARACTERS_MAX
        and _NAME.fullmatch(name) is not None
    ):
        raise SecretMissing(f"{name!r} is no name of a secret: use letters, digits, '.', '_', '-'")


def _values_in(directory: Path) -> Iterator[str]:
    try:
        named = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return
    for path in sorted(named)[:FILES_MAX]:
        with suppress(SecretMissing):
            yield _read(path) or ""


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(VALUE_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise SecretMissing(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > VALUE_BYTES_MAX:
        raise SecretMissing(f"{path} is larger than {VALUE_BYTES_MAX} bytes")
    # Editors and `echo` end a file with a line feed that is no part of the value.
    return data.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


__all__ = [
    "NOT_FOUND",
    "NOT_OVER_BROKER",
    "VALUE_BYTES_MAX",
    "SecretMissing",
    "SecretSources",
    "Secrets",
    "check_name",
    "secret_variables",
    "variable_of",
]
