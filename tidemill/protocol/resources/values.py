"""What all resources on the wire are made of: times, texts, pages.

Values that a server sends may grow: a reader passes over fields that it does not know. Values that
a client sends are closed: a field that is not known is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from tidemill.domain.patterns import KEY_PATTERN
from tidemill.domain.run import KEY_CHARACTERS_MAX

PAGE_DEFAULT = 50
PAGE_MAX = 500

SECRET = {"format": "password", "writeOnly": True}
"""What a schema says of a value that goes in and never comes out, not even in an error."""

T = TypeVar("T")

Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""RFC 3339 in UTC, up to microseconds: `2027-01-15T08:00:00.123456Z`."""

Key: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=KEY_CHARACTERS_MAX,
        pattern=KEY_PATTERN,
        description="The same key with the same body starts one run, however often it is sent.",
    ),
]
Limit: TypeAlias = Annotated[
    int, Meta(ge=1, le=PAGE_MAX, description="How many items a page has at most.")
]
Cursor: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="The `next` of the page before.")
]


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Some items of a list; `next` asks for those that follow, null when there are none."""

    items: tuple[T, ...]
    next: str | None = None


class ErrorView(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in an attempt."""

    type: str
    message: str
    traceback: str = ""


__all__ = [
    "PAGE_DEFAULT",
    "PAGE_MAX",
    "SECRET",
    "Cursor",
    "ErrorView",
    "Key",
    "Limit",
    "Page",
    "Time",
]
