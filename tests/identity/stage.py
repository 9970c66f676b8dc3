"""What tests of identity stand on: the whole application over a store, without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.api.stage import BASE_URL, JOB_TYPES
from tests.contract.conftest import ManualClock
from tidemill.api.app import Application, build_app
from tidemill.api.authentication import BearerAuthenticator
from tidemill.api.opening import make_services, serving
from tidemill.api.security import Security
from tidemill.api.services import Services
from tidemill.buses.memory import MemoryBus
from tidemill.credentials.passwords import Argon2Passwords
from tidemill.credentials.tokens import JwtSigner
from tidemill.domain.identity import Registration
from tidemill.engine.identity.bootstrap import prepare_bootstrap, signing_key
from tidemill.engine.identity.context import Identity, IdentityConfig
from tidemill.engine.identity.principals import Principals
from tidemill.ports.store import Store
from tidemill.runtime.system import SystemClock, SystemEntropy

ROOT = "root@mill.test"
PASSWORD = "a mill by the tide"
ROLES = ("viewer", "operator", "editor", "admin")


class Clock(ManualClock):
    """Stands still for whoever looks, and lets real time pass for whoever waits."""

    async def sleep(self, seconds: float) -> None:
        """Wait for real: duties of the application must not spin."""
        await SystemClock().sleep(seconds)


class House:
    """One process of the API, and those who ask it."""

    def __init__(self, services: Services, app: Application, principals: Principals) -> None:
        self.services = services
        self.app = app
        self.principals = principals
        self.store = services.store
        assert services.identity is not None
        self.identity = services.identity
        self.clock = services.clock
        self.root = ""

    def client(self, token: str = "", **headers: str) -> httpx.AsyncClient:
        """Somebody who asks, with a token or without."""
        address = headers.pop("address", "10.0.0.1")
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(address, 9))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers)

    async def ask(self, token: str, method: str, path: str, **more: Any) -> httpx.Response:
        """One request."""
        headers = more.pop("headers", {})
        if "namespace" in more:
            headers["Tidemill-Namespace"] = more.pop("namespace")
        async with self.client(token, **headers) as client:
            return await client.request(method, path, **more)

    async def got(self, token: str, method: str, path: str, **more: Any) -> Any:
        """One request that goes well."""
        answer = await self.ask(token, method, path, **more)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    async def bootstrap(self) -> str:
        """The access token of the first administrator."""
        token = await prepare_bootstrap(self.store, self.identity.entropy, None)
        body = {"token": token, "email": ROOT, "password": PASSWORD}
        self.root = (await self.got("", "POST", "/v1/auth/bootstrap", json=body))["access_token"]
        return self.root

    async def user(self, email: str, **roles: str) -> str:
        """The access token of a new user with roles by namespace."""
        body = {"email": email, "password": PASSWORD}
        await self.got(self.root, "POST", "/v1/users", json=body)
        for namespace, role in roles.items():
            await self.give(email, namespace, role)
        token: str = (await self.login(email))["access_token"]
        return token

    async def give(self, email: str, namespace: str, role: str) -> Any:
        """Give somebody a role."""
        body = {"email": email, "role": role}
        return await self.got(self.root, "POST", "/v1/members", json=body, namespace=namespace)

    async def login(self, email: str, password: str = PASSWORD) -> Any:
        """What a login answers."""
        body = {"email": email, "password": password}
        return await self.got("", "POST", "/v1/auth/login", json=body)

    async def key(self, token: str, namespace: str = "default", **body: Any) -> str:
        """The text of a new API key."""
        body = {"name": "a key", **body}
        made = await self.got(token, "POST", "/v1/keys", json=body, namespace=namespace)
        return str(made["secret"])

    async def namespaces(self, *names: str) -> None:
        """Make namespaces."""
        for name in names:
            await self.got(self.root, "POST", "/v1/namespaces", json={"name": name})


@asynccontextmanager
async def opened_house(
    store: Store,
    clock: ManualClock,
    registration: Registration = Registration.OFF,
    key: bytes | None = None,
) -> AsyncIterator[House]:
    """The application with identity; passwords are hashed with as little work as can be."""
    bus, entropy = MemoryBus(), SystemEntropy()
    hasher = Argon2Passwords(memory_kib=8, passes=1, lanes=1)
    services = make_services(store, bus, clock, entropy, JOB_TYPES)
    signer = JwtSigner(key or await signing_key(store, entropy), clock, entropy)
    services.identity = Identity(
        store=store,
        clock=clock,
        entropy=entropy,
        hasher=hasher,
        signer=signer,
        config=IdentityConfig(registration=registration),
    )
    principals = Principals(store, signer, clock)
    app = build_app(services, Security(authenticator=BearerAuthenticator(principals)))
    try:
        async with serving(services):
            yield House(services, app, principals)
    finally:
        hasher.close()
        await bus.close()
