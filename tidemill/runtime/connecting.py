"""The one thing that commands talk to: a client, of a server or of the store here.

Whoever works on the store serves the API as well. When nobody does, this process answers itself:
over a reader for commands that only look, as owner for a moment for those that change something.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tidemill.client.choosing import Choice
from tidemill.client.client import Client
from tidemill.client.connection import UNIX, Connection, Place
from tidemill.client.in_process import AppTransport
from tidemill.domain.errors import NotFound, StoreOwned, Unavailable
from tidemill.domain.identity import Registration
from tidemill.ports.bus import Bus
from tidemill.ports.store import Store
from tidemill.runtime.addresses import StoreAddress
from tidemill.runtime.owner import OwnerCard, find_owner
from tidemill.runtime.reaching import Reach
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import (
    MEMORY,
    bus_of,
    check_schema,
    open_bus,
    open_sealing,
    open_store,
    reading,
)

INSIDE = "http://localhost"
OWNER_TRIES_MAX = 50
OWNER_RETRY_SECONDS = 0.05
RETRIES = 2  # a person waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A client, and what is known about the other side."""

    client: Client
    served: bool = True  # somebody carries out what is stored
    store: StoreAddress | None = None  # the store, when no server was named


@asynccontextmanager
async def connect(
    settings: Settings,
    choice: Choice | None = None,
    *,
    namespace: str | None = None,
    changes: bool = False,
    creates: bool = False,
) -> AsyncIterator[Reached]:
    """A client of the chosen server, or of the store of the settings in a namespace.

    `changes` when something may be written, `creates` when the store need not be there before.
    """
    async with AsyncExitStack() as stack:
        if choice is not None:
            client = Client.over(Connection(_place_named(choice, settings), choice.credentials))
            yield Reached(client=await stack.enter_async_context(client))
            return
        # Who may register is a setting of those who serve, so no command refuses to invite.
        settings = replace(settings, registration=Registration.INVITATION.value)
        _refuse_missing(settings.store, changes=changes, creates=creates)
        place, served = await _reach_store(settings, stack, changes=changes)
        client = Client.over(Connection(replace(place, namespace=namespace)))
        await stack.enter_async_context(client)
        yield Reached(client=client, served=served, store=settings.store)


def _place_named(choice: Choice, settings: Settings) -> Place:
    """A server; who did not type its name may have meant the store here."""
    path = settings.store.path
    meant = choice.named_by and path is not None and path.exists()
    return Place(
        server=choice.server,
        namespace=choice.namespace,
        retries=RETRIES,
        origin=choice.named_by,
        instead=f"the store here is --store {path}" if meant else "",
    )


def _refuse_missing(address: StoreAddress, *, changes: bool, creates: bool) -> None:
    """Who changes something becomes owner, and an owner makes a store where there is none."""
    if changes and not creates and address.path is not None and not address.path.exists():
        raise NotFound(f"there is no store at {address.path} yet: `tidemill run` creates it")


async def _reach_store(
    settings: Settings, stack: AsyncExitStack, *, changes: bool
) -> tuple[Place, bool]:
    """Where the API over a store is, and whether anybody carries out what is stored."""
    path = settings.store.path
    if path is None:
        return await stack.enter_async_context(_beside_others(settings)), True
    card = await _introduced(path)
    if card is None and changes:
        try:
            return await stack.enter_async_context(_as_owner(settings)), False
        except StoreOwned:  # somebody was faster, and will serve in a moment
            card = await _introduced(path)
            if card is None:
                raise
    if card is not None:
        return _place_of(card), True
    store = await stack.enter_async_context(reading(settings.store, SystemClock()))
    return await stack.enter_async_context(in_process(store, open_bus(MEMORY))), False


async def _introduced(path: Path) -> OwnerCard | None:
    """Who owns a SQLite file; one that has only begun is waited for a little."""
    clock = SystemClock()
    for _ in range(OWNER_TRIES_MAX):
        card = find_owner(path)
        if card is None or card.http_socket is not None:
            return card
        await clock.sleep(OWNER_RETRY_SECONDS)
    raise Unavailable(f"{path} is owned by a process that does not serve yet, or ends: try again")


def _place_of(card: OwnerCard) -> Place:
    """Over the socket that only this user may open, so that no login is needed."""
    return Place(server=f"{UNIX}{card.http_socket}", retries=RETRIES)


@asynccontextmanager
async def in_process(
    store: Store, bus: Bus, settings: Settings | None = None
) -> AsyncIterator[Place]:
    """An API in this process, over a store that is open.

    With settings it can do everything; without, the store is for reading only.
    """
    from tidemill.api.app import build_app
    from tidemill.api.opening import make_services, serving
    from tidemill.api.security import Security, SingleUser
    from tidemill.runtime.job_types import job_types

    clock, entropy = SystemClock(), SystemEntropy()
    services = make_services(store, bus, clock, entropy, job_types())
    single = Security(authenticator=SingleUser(store))
    transport = AppTransport(build_app(services, single))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(bus.close)
        if settings is not None:
            from tidemill.runtime.identity_parts import open_identity

            identity = await open_identity(store, clock, entropy, settings)
            stack.callback(identity.close)
            services.identity = identity.identity
            services.sealing = open_sealing(settings.secrets_key_file, entropy)
        await stack.enter_async_context(serving(services))
        yield Place(server=INSIDE, transport=transport, retries=RETRIES)


@asynccontextmanager
async def _beside_others(settings: Settings) -> AsyncIterator[Place]:
    clock = SystemClock()
    reach = Reach(clock, settings.start_retry, lambda _: None)
    store = await open_store(settings.store, clock, reach)
    try:
        await check_schema(store, settings.store)
        async with in_process(store, bus_of(settings), settings) as place:
            yield place
    finally:
        await store.close()


@asynccontextmanager
async def _as_owner(settings: Settings) -> AsyncIterator[Place]:
    from tidemill.runtime.embedded import Embedded

    alone = Settings(
        store=settings.store,
        workers=0,
        bus=settings.bus or MEMORY,
        registration=settings.registration,
    )
    async with Embedded(alone):
        assert settings.store.path is not None, "PostgreSQL has no owner"
        card = await _introduced(settings.store.path)
        assert card is not None, "this process is the owner"
        yield _place_of(card)
