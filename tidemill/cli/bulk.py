"""`tidemill bulk`: jobs or runs from a file, by the thousand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from tidemill.cli.link import Link, link_options
from tidemill.cli.output import say
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.protocol.resources.bulk import LINE_BYTES_MAX

REFUSED_SHOWN_MAX = 20


@click.command()
@click.argument("file", metavar="FILE.ndjson")
@click.option(
    "--kind",
    type=click.Choice(("jobs", "runs")),
    help="What the lines are; seen from the first line when not given.",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each item, in order.")
@link_options
def bulk(file: str, kind: str | None, as_json: bool, link: Link) -> int:
    """Start what FILE holds, one JSON object on each line; `-` is standard input.

    Lines are jobs, {"type": …, "payload": …}, or runs, {"workflow": …, "input": …}. Each stands for
    itself: those that are refused are told, the others run. Lines with a `key` may be sent again
    without starting anything twice. Exit 0 when all were taken, 1 when some were refused.

    \b
    tidemill bulk jobs.ndjson
    generate | tidemill bulk - --json > ids.ndjson
    """

    async def work(reached: Any) -> int:
        with _opened(file) as source:
            lines = _lines(source, file)
            first = next(lines, None)
            if first is None:
                say("the file is empty", err=True)
                return 0
            chosen = kind or ("jobs" if "type" in first else "runs")
            return await _send(reached.client, _again(first, lines), chosen, file, as_json)

    return link.run(work, changes=True, creates=True)


async def _send(client: Any, items: Iterator[Any], kind: str, file: str, as_json: bool) -> int:
    taken = refused = 0
    told: list[str] = []
    with _bar(_line_count(file)) as advance:
        async for item in client.bulk(items, kind=kind, on_progress=advance):
            taken, refused = taken + (item.problem is None), refused + (item.problem is not None)
            if as_json:
                say(msgspec.json.encode(item).decode())
            elif item.problem is not None and refused <= REFUSED_SHOWN_MAX:
                told.append(f"item {item.index + 1}: {_words(item.problem)}")
    for line in told:  # now that the bar is gone
        say(line, err=True)
    if not as_json:
        hidden = refused - REFUSED_SHOWN_MAX
        if hidden > 0:
            say(f"… and {hidden:,} more refused", err=True)
        say(f"{taken:,} {kind} taken, {refused:,} refused")
    return 1 if refused else 0


def _words(problem: Any) -> str:
    from tidemill.cli.views.text import first_line

    said = [f"{one.path}: {one.message}" for one in problem.errors]
    return first_line("; ".join(said) or problem.detail or problem.title, 300)


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error


def _lines(source: BinaryIO, file: str) -> Iterator[dict[str, Any]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    number = 0
    while line := source.readline(LINE_BYTES_MAX + 1):
        number += 1
        if not line.strip():
            continue
        try:
            if len(line) > LINE_BYTES_MAX:
                raise msgspec.DecodeError(f"longer than {LINE_BYTES_MAX:,} bytes")
            yield decoder.decode(line)
        except msgspec.DecodeError as error:
            text = f"is no JSON object: {error}"
            raise InvalidInput(
                [Problem(path=f"{file}:{number}", message=text, code="NDJSON")]
            ) from error


def _again(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _line_count(file: str) -> int | None:
    if file == "-":
        return None
    with Path(file).open("rb") as source:
        return sum(1 for line in source if line.strip())


def _bar(total: int | None) -> Any:
    """A bar where one can be drawn, nothing elsewhere; yields what takes the count so far."""
    if not sys.stderr.isatty():
        return nullcontext(lambda _: None)
    from tidemill.cli.views.progress import bar

    return bar(total)
