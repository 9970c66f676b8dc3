"""Options that several commands share, and how what they say is read."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.runtime.resolving import resolve
from tidemill.runtime.setting_kinds import TRUTH, shown
from tidemill.runtime.setting_rows import Setting
from tidemill.runtime.settings import LOOK, Settings, settings_of

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])

INPUT_BYTES_MAX = 1_048_576


def settings_options(role: str) -> Callable[[Command], Command]:
    """A flag for every setting of a role; what holds is handed over as `settings`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_settings(**given: Any) -> Any:
            flags, config = take_flags(given, role)
            settings = resolve(role, flags, os.environ, config).settings
            if role == "run" and not settings.workers:
                raise _wrong("--workers", "must be at least 1: a run needs somebody to do it")
            return command(settings=_with_absolute_files(settings), **given)

        return cast(Command, add_flags(with_settings, role))

    return decorate


store_option = settings_options(LOOK)
"""`--store URL`, for commands that need nothing else."""


def add_flags(command: Command, role: str | None) -> Command:
    """A flag for every setting of a role, and --config; each may be left out."""
    for one in reversed([one for one in settings_of(role) if one.option]):
        command = _flag(one, role)(command)
    return click.option(
        "--config",
        metavar="FILE",
        help="A TOML file with settings; ./tidemill.toml or TIDEMILL_CONFIG if not given.",
    )(command)


def _flag(one: Setting, role: str | None) -> Callable[[Command], Command]:
    default = shown(one.default_for(role))
    if one.name == "store":
        default = ""  # depends on the working folder, and is told on the first page
    told = f" [default: {default}]" if default not in {"", "-", "false"} else ""
    explained = one.help_for(role)
    text = f"{explained[0].upper()}{explained[1:]}.{told}"
    if one.kind is TRUTH:
        return click.option(one.option, one.name, is_flag=True, help=text)
    flags = [one.option, one.also[role]] if role in one.also else [one.option]
    return click.option(
        *flags,
        one.name,
        multiple=one.kind.many,
        metavar=one.metavar,
        help=text,
        hidden=one.tuning and role == "run",  # who tries something out need not see it
    )


def take_flags(
    given: dict[str, Any], role: str | None
) -> tuple[Mapping[str, Sequence[str]], str | None]:
    """Take the settings out of what click hands over; those that were given, and --config."""
    flags: dict[str, Sequence[str]] = {}
    for one in settings_of(role):
        value = given.pop(one.name, None)
        if value is True:
            flags[one.name] = ["true"]
        elif value:
            flags[one.name] = value if one.kind.many else [value]
        elif isinstance(value, str):
            flags[one.name] = [value]  # an empty text is wrong, and is told so
    return flags, given.pop("config")


def _with_absolute_files(settings: Settings) -> Settings:
    """Files by their absolute path, so that `resume` finds them from any folder."""
    return replace(settings, imports=absolute(settings.imports))


def json_option(command: Command) -> Command:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the asynchronous part of a command."""
    return asyncio.run(work)


def absolute(imports: Iterable[str]) -> tuple[str, ...]:
    """Files by their absolute path; modules by their name."""
    return tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in imports)


def read_input(text: str | None, option: str = "--input") -> Any:
    """The value of an option: JSON, or @file for a file that holds JSON; {} when not given."""
    import msgspec

    if text is None:
        return {}
    data = _file_bytes(Path(text[1:]), option) if text.startswith("@") else text.encode()
    if len(data) > INPUT_BYTES_MAX:
        raise _wrong(option, f"is larger than {INPUT_BYTES_MAX:,} bytes")
    try:
        value = msgspec.json.decode(data)
        json.loads(data, object_pairs_hook=_without_doubles)
    except msgspec.DecodeError as error:
        form = f"write {option} '{{\"name\": 1}}' or {option} @file.json"
        raise _wrong(option, f"is not JSON ({error}); {form}") from error
    except RecursionError as error:
        raise _wrong(option, "is nested too deeply") from error
    except _NamedTwice as error:
        raise _wrong(option, f"has the name {error} twice in one object: remove one") from error
    return value


class _NamedTwice(Exception):
    """Of two values for one name, one would be lost without a word."""


def _without_doubles(pairs: list[tuple[str, Any]]) -> None:
    seen = set[str]()
    for name, _ in pairs:
        if name in seen:
            raise _NamedTwice(json.dumps(name))
        seen.add(name)


def _file_bytes(path: Path, option: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(INPUT_BYTES_MAX + 1)
    except OSError as error:
        raise _wrong(option, f"cannot be read: {error}") from error


def _wrong(option: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=option, message=message, code="option")])
