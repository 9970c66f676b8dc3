"""What the groups of calls of a client are made of: one request, or a list page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from tidemill.client.connection import Connection, Request
from tidemill.protocol.resources import Page

T = TypeVar("T")

PAGES_MAX = 100_000
PAGE_ITEMS_MAX = 500


class Calls:
    """A connection, and how resources are asked for over it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def _get(self, path: str, kind: type[T], query: Mapping[str, Any] | None = None) -> T:
        return await self.connection.fetch(
            Request(method="GET", path=path, query=_texts(query)), kind
        )

    async def _post(
        self, path: str, kind: type[T], body: Any = None, *, repeatable: bool = True
    ) -> T:
        return await self.connection.fetch(
            Request(method="POST", path=path, body=_encoded(body), repeatable=repeatable), kind
        )

    async def _change(self, method: str, path: str, kind: type[T], body: Any) -> T:
        """A PUT or PATCH: the same again changes nothing more."""
        return await self.connection.fetch(
            Request(method=method, path=path, body=_encoded(body)), kind
        )

    async def _send(self, method: str, path: str, body: Any = None) -> None:
        """A change whose answer says nothing that the caller does not know."""
        await self.connection.call(Request(method=method, path=path, body=_encoded(body)))

    async def _pages(
        self, path: str, kind: type[T], query: Mapping[str, Any], limit: int | None
    ) -> AsyncIterator[T]:
        """Every item of a list, up to a limit, asked for page by page as they are used."""
        after: str | None = None
        left = limit
        for _ in range(PAGES_MAX):
            size = PAGE_ITEMS_MAX if left is None else min(left, PAGE_ITEMS_MAX)
            asked = {**query, "limit": size, "after": after}
            page: Page[T] = await self._get(path, Page[kind], asked)  # type: ignore[valid-type]
            for item in page.items:
                yield item
            left = None if left is None else left - len(page.items)
            after = page.next
            if after is None or left == 0:
                return


def place(*parts: str | int) -> str:
    """A path under /v1, each part safe to stand in a URL."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def _encoded(body: Any) -> bytes | None:
    return None if body is None else msgspec.json.encode(body)


def _texts(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Times as JSON has them; what is None is not sent."""
    builtins: dict[str, Any] = msgspec.to_builtins(query or {})
    return {name: value for name, value in builtins.items() if value is not None}
