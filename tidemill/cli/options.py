"""Options that several commands share, and how what they say is read."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.runtime.config import (
    DEFAULT_STORE,
    GRACE_SECONDS_MAX,
    SLOTS_MAX,
    WORKERS_MAX,
    EmbeddedSettings,
    parse_store,
)

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])

INPUT_BYTES_MAX = 1_048_576


def store_option(command: Command) -> Command:
    """`--store URL`."""
    return click.option(
        "--store",
        envvar="TIDEMILL_STORE",
        default=DEFAULT_STORE,
        show_default=True,
        metavar="URL",
        help="A path, sqlite:///path or postgresql://…",
    )(command)


def settings_options(command: Command) -> Command:
    """`--workers`, `--slots`, `--import`, `--grace` and `--store`, handed over as `settings`."""

    @functools.wraps(command)
    def with_settings(
        *, workers: int, slots: int, imports: tuple[str, ...], grace: float, store: str, **rest: Any
    ) -> Any:
        settings = EmbeddedSettings(
            store=parse_store(store),
            workers=workers,
            slots=slots,
            imports=absolute(imports),
            grace_seconds=grace,
        )
        return command(settings=settings, **rest)

    wrapped = cast(Command, store_option(with_settings))
    for option in _WORKER_OPTIONS:
        wrapped = option(wrapped)
    return wrapped


_WORKER_OPTIONS = (
    click.option(
        "--grace",
        type=click.FloatRange(0, GRACE_SECONDS_MAX),
        default=10,
        show_default=True,
        metavar="SECONDS",
        help="What running tasks get to finish after Ctrl-C.",
    ),
    click.option(
        "--import",
        "imports",
        multiple=True,
        metavar="MODULE|FILE",
        help="Python functions for tasks; may be repeated.",
    ),
    click.option(
        "--slots",
        type=click.IntRange(1, SLOTS_MAX),
        default=64,
        show_default=True,
        help="Tasks that one worker runs at once.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, WORKERS_MAX),
        default=1,
        show_default=True,
        help="Worker processes.",
    ),
)


def json_option(command: Command) -> Command:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the asynchronous part of a command."""
    return asyncio.run(work)


def absolute(imports: Iterable[str]) -> tuple[str, ...]:
    """Files by their absolute path, so that `resume` finds them from any folder."""
    return tuple(str(Path(name).resolve()) if name.endswith(".py") else name for name in imports)


def read_input(text: str | None) -> Any:
    """The run's input: JSON, or @file for a file that holds JSON; {} when not given."""
    import msgspec

    if text is None:
        return {}
    data = _file_bytes(Path(text[1:])) if text.startswith("@") else text.encode()
    if len(data) > INPUT_BYTES_MAX:
        raise _wrong_input(f"is larger than {INPUT_BYTES_MAX:,} bytes")
    try:
        value = msgspec.json.decode(data)
        json.loads(data, object_pairs_hook=_without_doubles)
    except msgspec.DecodeError as error:
        raise _wrong_input(
            f"is not JSON ({error}); write --input '{{\"name\": 1}}' or --input @file.json"
        ) from error
    except RecursionError as error:
        raise _wrong_input("is nested too deeply") from error
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> None:
    """Of two values for one name, one would be lost without a word."""
    seen = set[str]()
    for name, _ in pairs:
        if name in seen:
            raise _wrong_input(f"has the name {json.dumps(name)} twice in one object: remove one")
        seen.add(name)


def _file_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(INPUT_BYTES_MAX + 1)
    except OSError as error:
        raise _wrong_input(f"cannot be read: {error}") from error


def _wrong_input(message: str) -> InvalidInput:
    return InvalidInput([Problem(path="--input", message=message, code="input")])
