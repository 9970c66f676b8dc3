"""The parts that roles are made of, opened one by one; what was begun last ends first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from tidemill.buses.memory import MemoryBus
from tidemill.domain.errors import Unavailable
from tidemill.gateway.broker_gateway import BrokerGateway
from tidemill.gateway.identity import identity_handler
from tidemill.gateway.query import query_handler
from tidemill.gateway.server import GatewayServer
from tidemill.notifier.relay import Relay
from tidemill.ports.bus import Bus
from tidemill.ports.store import Store
from tidemill.runtime.addresses import parse_endpoint
from tidemill.runtime.guarding import gateway_credentials, workers_gate, workers_option
from tidemill.runtime.identity_parts import IdentityParts, open_identity
from tidemill.runtime.listening import cannot_listen
from tidemill.runtime.reaching import Reach
from tidemill.runtime.role_configs import relay_config, scheduler_config
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.wiring import bus_of, open_broker, open_sealing, open_store
from tidemill.scheduler.service import Scheduler

GOODBYE_SECONDS = 0.5
FLUSH_STEPS_MAX = 100
FLUSH_SECONDS = 3.0

T = TypeVar("T")


class Parts:
    """Store, bus, scheduler, relay and gateways of one process."""

    def __init__(self, settings: Settings, tell: Callable[[str], None]) -> None:
        self.settings = settings
        self.name = settings.process_name
        self.clock = SystemClock()
        self.entropy = SystemEntropy()
        self.sealing = open_sealing(settings.secrets_key_file, self.entropy)
        self.bus: Bus = bus_of(settings)
        self.store: Store
        self.scheduler: Scheduler | None = None
        self.relay: Relay | None = None
        self.identity: IdentityParts | None = None
        self.exit = contextlib.AsyncExitStack()
        self.exit.push_async_callback(self.bus.close)
        self.is_open = False  # the store has answered
        self.tell = tell
        self._duties: list[asyncio.Task[None]] = []

    async def open_store(self) -> Store:
        """Connect, for as long as `start_retry` says; Unreachable then."""
        self.store = await open_store(self.settings.store, self.clock, self._reach())
        self.exit.push_async_callback(self.store.close)
        self.is_open = True
        return self.store

    async def reached(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the store again while it does not answer: it may go away between two questions."""
        return await self._reach().until("store", self.settings.store.dsn or "", ask)

    def _reach(self) -> Reach:
        return Reach(self.clock, self.settings.start_retry, self.tell)

    async def open_identity(self) -> IdentityParts:
        """Know who there is, from now on; the first call opens it."""
        if self.identity is None:
            self.identity = await open_identity(self.store, self.clock, self.entropy, self.settings)
            self.exit.callback(self.identity.close)
        return self.identity

    def start_scheduler(self) -> Scheduler:
        """Take turns from now on."""
        scheduler = self.scheduler = Scheduler(
            name=self.name,
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            entropy=self.entropy,
            config=scheduler_config(self.settings),
        )
        scheduler.open_secrets(self.sealing)
        if self.identity is not None:
            scheduler.sign_tasks(self.identity.identity.signer)
        self.exit.push_async_callback(self._finish, scheduler.close)
        self.begin(scheduler.run())
        return scheduler

    def start_relay(self, holder: str | None = None) -> None:
        """Relay from now on; at the end, what is left and can be told is told."""
        relay = self.relay = Relay(
            name=holder or self.name,
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            config=relay_config(self.settings),
            # What others publish or hear, only a bus within this process can tell.
            is_heard=self.bus.is_heard if isinstance(self.bus, MemoryBus) else _perhaps,
        )
        self.exit.push_async_callback(self._finish, relay.resign)
        self.exit.push_async_callback(self._finish, partial(_flush, relay))
        self.begin(relay.run())

    async def open_gateway(self, address: str, *, guarded: bool) -> GatewayServer:
        """Let workers connect; where others could, with TLS and credentials as they were set."""
        assert self.scheduler is not None, "a gateway leads to a scheduler"
        principals = self.identity.principals if self.identity else None
        handlers = [query_handler(self.store, self.clock)]
        if principals is not None:
            handlers.append(identity_handler(principals))
        gateway = GatewayServer(
            self.scheduler,
            address,
            handlers=handlers,
            credentials=gateway_credentials(self.settings) if guarded else None,
            gate=workers_gate(self.settings, principals, self.clock) if guarded else None,
        )
        try:
            await gateway.start()
        except OSError as error:
            if not guarded:  # a socket of its own, which no option names
                raise
            option = workers_option(self.settings)
            raise cannot_listen(option, parse_endpoint(address), error) from error
        self.exit.push_async_callback(gateway.stop, GOODBYE_SECONDS)
        return gateway

    def open_broker_gateway(self, url: str) -> None:
        """Serve the workers behind a broker."""
        assert self.scheduler is not None, "a gateway leads to a scheduler"
        broker = open_broker(url)
        self.exit.push_async_callback(broker.close)
        self.begin(BrokerGateway(self.scheduler.pool_door, broker, self.clock).run())

    def begin(self, duty: Coroutine[Any, Any, None]) -> None:
        """Carry out a duty until the end."""
        task = asyncio.create_task(duty)
        self._duties.append(task)

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.exit.push_async_callback(end)

    def check(self) -> None:
        """Raise what made a duty end, if one has."""
        for duty in self._duties:
            if duty.done() and not duty.cancelled() and (error := duty.exception()) is not None:
                raise error

    async def until(self, stop: asyncio.Event) -> None:
        """Wait to be stopped; raises what made a duty end before."""
        waiting = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([waiting, *self._duties], return_when=asyncio.FIRST_COMPLETED)
            self.check()
        finally:
            waiting.cancel()

    async def _finish(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Last work of a part: a store or bus that is away must not keep the process."""
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await work()


def _perhaps() -> bool:
    return True


async def _flush(relay: Relay) -> None:
    """Publish what is left, as far as this relay leads."""
    for _ in range(FLUSH_STEPS_MAX):
        if not await relay.step():
            return
