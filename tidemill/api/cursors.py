"""Cursors: where the next page of a list begins, as text that only this server reads."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.protocol.resources.values import Page

C = TypeVar("C", bound=msgspec.Struct)
Row = TypeVar("Row")
View = TypeVar("View")


class RunCursor(msgspec.Struct, frozen=True, tag="run", forbid_unknown_fields=True):
    """Behind a run."""

    id: RunId


class TaskCursor(msgspec.Struct, frozen=True, tag="task", forbid_unknown_fields=True):
    """Behind a task of one run."""

    position: int


class LetterCursor(msgspec.Struct, frozen=True, tag="letter", forbid_unknown_fields=True):
    """Behind a dead letter."""

    run_id: RunId
    position: int

    @property
    def key(self) -> TaskKey:
        """The dead letter."""
        return TaskKey(self.run_id, self.position)


class NameCursor(msgspec.Struct, frozen=True, tag="name", forbid_unknown_fields=True):
    """Behind a name."""

    name: str


class NumberCursor(msgspec.Struct, frozen=True, tag="number", forbid_unknown_fields=True):
    """Behind a number."""

    number: int


def encode_cursor(cursor: msgspec.Struct) -> str:
    """A cursor as text."""
    return urlsafe_b64encode(msgspec.json.encode(cursor)).rstrip(b"=").decode()


def decode_cursor(text: str | None, kind: type[C]) -> C | None:
    """Read back a cursor of this kind; InvalidInput for anything else."""
    if text is None:
        return None
    try:
        data = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        cursor = msgspec.json.decode(data, type=kind)
    except (ValueError, msgspec.DecodeError) as error:
        raise _bad_cursor() from error
    if encode_cursor(cursor) != text or not _sane(cursor):
        raise _bad_cursor()
    return cursor


def paged(
    rows: Sequence[Row],
    limit: int,
    view: Callable[[Row], View],
    cursor: Callable[[Row], msgspec.Struct],
) -> Page[View]:
    """A page of rows that were asked for with a limit of one more: so a next page is known."""
    shown = rows[:limit]
    more = encode_cursor(cursor(shown[-1])) if len(rows) > limit else None
    return Page(items=tuple(view(row) for row in shown), next=more)


def _sane(cursor: msgspec.Struct) -> bool:
    """Whether a store takes what is in it: texts of names and ids, numbers of 31 bits."""
    return all(
        0 <= value < 2**31 if isinstance(value, int) else str(value).isprintable()
        for value in msgspec.structs.astuple(cursor)
    )


def _bad_cursor() -> InvalidInput:
    text = "is not the `next` of a page of this list: leave it out to begin anew"
    return InvalidInput([Problem(path="after", message=text, code="BAD_CURSOR")])


__all__ = [
    "LetterCursor",
    "NameCursor",
    "NumberCursor",
    "RunCursor",
    "TaskCursor",
    "decode_cursor",
    "encode_cursor",
    "paged",
]
