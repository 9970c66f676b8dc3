"""What a client shows to a server, and how it gets a fresh one."""

from __future__ import annotations

from typing import Protocol


class Credentials(Protocol):
    """Where the bearer token of a request comes from."""

    async def token(self) -> str | None:
        """The token to show; None to show none."""

    async def renewed(self, refused: str | None) -> str | None:
        """Another token in place of one that a server refused; None when there is none."""


class FixedToken:
    """An API key, or an access token that nobody renews."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    async def token(self) -> str | None:
        """Always the same."""
        return self._token

    async def renewed(self, refused: str | None) -> str | None:
        """There is no other."""
        return None
