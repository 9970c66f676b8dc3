"""Logging in and out, and who one is."""

from __future__ import annotations

from msgspec import UNSET

from tidemill.client.calls import Calls, place
from tidemill.protocol.resources.identity import (
    Bootstrap,
    ChangePassword,
    LogIn,
    MeView,
    Refresh,
    Register,
    TokensView,
    UserView,
)


class AuthCalls(Calls):
    """What concerns the one who asks. Tokens are returned, not kept: contexts keep them."""

    async def login(self, email: str, password: str) -> TokensView:
        """Tokens for somebody with an account."""
        body = LogIn(email=email, password=password)
        return await self._post(place("auth", "login"), TokensView, body, repeatable=False)

    async def refresh(self, refresh_token: str) -> TokensView:
        """The next pair of tokens; the old refresh token is spent."""
        body = Refresh(refresh_token=refresh_token)
        return await self._post(place("auth", "refresh"), TokensView, body, repeatable=False)

    async def logout(self) -> None:
        """End the login that this client shows."""
        await self._send("POST", place("auth", "logout"))

    async def me(self) -> MeView:
        """Who the server takes this client for, and what that may do."""
        return await self._get(place("auth", "me"), MeView)

    async def bootstrap(
        self, token: str, email: str, password: str, name: str | None = None
    ) -> TokensView:
        """Become the first administrator, with the token that the server printed."""
        body = Bootstrap(token=token, email=email, password=password, name=name or UNSET)
        return await self._post(place("auth", "bootstrap"), TokensView, body, repeatable=False)

    async def register(
        self, email: str, password: str, *, name: str | None = None, invitation: str | None = None
    ) -> UserView:
        """Make an account for oneself, where that is allowed."""
        body = Register(
            email=email, password=password, name=name or UNSET, invitation=invitation or UNSET
        )
        return await self._post(place("auth", "register"), UserView, body, repeatable=False)

    async def change_password(self, current: str, new: str) -> None:
        """Replace one's own password; other logins end."""
        body = ChangePassword(current=current, new=new)
        await self._send("POST", place("auth", "password"), body)
