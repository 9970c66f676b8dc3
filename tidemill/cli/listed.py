"""How commands of administration print what they were asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tidemill.cli.views.listing import print_json, print_rows
from tidemill.cli.views.text import printable

ITEMS_MAX = 1_000


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
