"""Tokens of a login: kept in the context file, and renewed by one command at a time."""

from __future__ import annotations

import msgspec

from tidemill.client.connection import Connection, Place, Request
from tidemill.client.contexts import Context, ContextFile
from tidemill.client.system import System
from tidemill.domain.errors import Unauthenticated, Unavailable
from tidemill.protocol.resources.identity import Refresh, TokensView

LOCK_SECONDS_MAX = 30.0
LOCK_POLL_SECONDS = 0.05


def with_tokens(context: Context, tokens: TokensView) -> Context:
    """The context after a login or a renewal."""
    return msgspec.structs.replace(
        context,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        api_key=None,
    )


class ContextCredentials:
    """The tokens of one context.

    A refresh token is good for one use, and using it twice looks like theft to the server. So it is
    used under the lock of the file, and who waited for the lock takes what the other one got.
    """

    def __init__(
        self, file: ContextFile, name: str, context: Context, system: System | None = None
    ) -> None:
        self._file = file
        self._name = name
        self._context = context
        self._system = system or System()

    async def token(self) -> str | None:
        """The access token of the last login or renewal."""
        return self._context.access_token

    async def renewed(self, refused: str | None) -> str | None:
        """Another access token; None when nobody is logged in."""
        deadline = self._system.monotonic() + LOCK_SECONDS_MAX
        while self._system.monotonic() < deadline:
            with self._file.locked() as mine:
                if mine:
                    return await self._renew(refused)
            await self._system.sleep(LOCK_POLL_SECONDS)
        raise Unavailable(f"{self._file.path} is locked by another command: try again")

    async def _renew(self, refused: str | None) -> str | None:
        contexts = self._file.read()
        current = contexts.by_name.get(self._name)
        if current is None or current.refresh_token is None:
            return None
        if current.access_token == refused:
            current = await self._refresh(current)
            self._file.write(contexts.with_context(self._name, current))
        self._context = current
        return current.access_token

    async def _refresh(self, context: Context) -> Context:
        place = Place(server=context.server, origin=f"context {self._name}")
        connection = Connection(place, system=self._system)
        request = Request(
            method="POST",
            path="/v1/auth/refresh",
            body=msgspec.json.encode(Refresh(refresh_token=context.refresh_token or "")),
            repeatable=False,
        )
        try:
            tokens = await connection.fetch(request, TokensView)
        except Unauthenticated as error:
            raise Unauthenticated(
                f"the login of context {self._name} is over: `tidemill login` again"
            ) from error
        finally:
            await connection.close()
        return with_tokens(context, tokens)
