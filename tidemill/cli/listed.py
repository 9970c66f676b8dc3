"""How commands of administration print what they were asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tidemill.cli.views.listing import print_json, print_rows
from tidemill.cli.views.text import printable
from tidemill.domain.errors import InvalidInput, Problem

ITEMS_MAX = 1_000


async def find_listed(
    items: AsyncIterator[Any], text: str, lives: Callable[[Any], bool], noun: str
) -> str:
    """The id that is meant by an id, or by a name that only one living item has.

    A text that is neither is left to the server, which refuses it.
    """
    named = []
    async for item in items:
        if item.id == text:
            return text
        if item.name == text and lives(item):
            named.append(item.id)
    if len(named) > 1:
        message = f"{text!r} is the name of {len(named)} {noun} ({', '.join(named)}): give the id"
        raise InvalidInput([Problem(path="", message=message, code="ambiguous")])
    return named[0] if named else text


async def print_list(
    items: AsyncIterator[Any],
    headings: Sequence[str],
    row: Callable[[Any], Sequence[str]],
    as_json: bool,
) -> None:
    """Print up to a thousand items: a table for people, an array for programs."""
    found = []
    async for item in items:
        found.append(item)
        if len(found) == ITEMS_MAX:
            break
    if as_json:
        print_json(found)
        return
    print_rows(headings, [[printable(cell) for cell in row(one)] for one in found], "entries")
