"""The whole application on a loopback port, with identity, a scheduler and a worker at work."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.api.crew import at_work
from tests.contract.conftest import ManualClock
from tests.identity.stage import House, opened_house
from tidemill.api.app import build_app
from tidemill.api.security import Security
from tidemill.domain.errors import Unauthenticated
from tidemill.domain.identifiers import Moment
from tidemill.domain.principals import Principal
from tidemill.ports.store import Store
from tidemill.runtime.http_server import HttpServer
from tidemill.runtime.system import SystemClock

TOKEN = "open-sesame"


class RealClock(ManualClock):
    """The clock of this machine, where a test could set one."""

    def now(self) -> Moment:
        """The wall clock."""
        return SystemClock().now()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return SystemClock().monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await SystemClock().sleep(seconds)


class OneToken:
    """Knows one token: the administrator's, which no logout that is tried out takes away."""

    def __init__(self, house: House, principal: Principal) -> None:
        self._house = house
        self._principal = principal

    async def authenticate(self, authorization: str | None) -> Principal | None:
        """The administrator, by the token."""
        if authorization is None:
            return None
        if authorization != f"Bearer {TOKEN}":
            raise Unauthenticated("the token does not hold")
        return self._principal

    async def is_there(self, namespace: str) -> bool:
        """Whether there is such a namespace."""
        return await self._house.principals.is_there(namespace)


@asynccontextmanager
async def a_server(store: Store) -> AsyncIterator[str]:
    """Serve until the block ends; the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    async with opened_house(store, RealClock()) as house, at_work(house.services):
        principal = await house.principals.of(await house.bootstrap())
        security = Security(authenticator=OneToken(house, principal))
        server = HttpServer(build_app(house.services, security), listener, grace_seconds=1.0)
        await server.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await server.stop()
