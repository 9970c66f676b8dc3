"""The serving roles, each an async context: api, scheduler and notifier apart, or all as `up`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.urls import mask_url
from tidemill.engine.identity.bootstrap import has_signing_key
from tidemill.ports.clock import Clock
from tidemill.runtime.addresses import parse_endpoint, scheme_of
from tidemill.runtime.embedded import Embedded
from tidemill.runtime.guarding import check_listening, is_asked_who_calls
from tidemill.runtime.health import HealthServer
from tidemill.runtime.listening import listen_tcp
from tidemill.runtime.parts import Parts
from tidemill.runtime.probing import bus_trouble, via_trouble
from tidemill.runtime.reloading import Reloader
from tidemill.runtime.resuming import with_left_imports
from tidemill.runtime.setting_checks import SINGLE_USER
from tidemill.runtime.settings import Settings
from tidemill.runtime.standing import Standing
from tidemill.runtime.tuning import settled_in
from tidemill.runtime.wiring import bus_url, check_schema
from tidemill.scheduler.service import Scheduler

SETTLE_SECONDS = 2.0
SETTLE_POLL_SECONDS = 0.02

Tell = Callable[[str], None]


class Role:
    """A role that has begun: what it is, and where it is reached."""

    def __init__(self, name: str, parts: Parts, standing: Standing | None = None) -> None:
        self.name = name
        self.parts = parts
        self.standing = standing or Standing(name, parts)
        self.facts: dict[str, str] = {  # for people
            "store": str(parts.settings.store),
            "bus": mask_url(bus_url(parts.settings)),
        }

    async def until(self, stop: asyncio.Event) -> None:
        """Work until stopped; from then on, the role is draining."""
        with settled_in():
            await self.parts.until(stop)
        self.standing.draining = True

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer about health, if that was asked for, from the first moment to the last."""
        if self.parts.settings.health is None:
            yield
            return
        server = HealthServer(self.parts.settings.health, self.standing.look)
        try:
            await server.start()
        except OSError as error:
            message = f"cannot listen there: {error.strerror or error}"
            raise InvalidInput([Problem(path="--health", message=message, code="x")]) from error
        self.facts["health"] = f"http://{server.endpoint}/ready"
        try:
            yield
        finally:
            await server.stop()


@asynccontextmanager
async def scheduler_role(settings: Settings, tell: Tell) -> AsyncIterator[Role]:
    """A scheduler and its gateways, on a store that others share."""
    check_listening(settings)
    async with _on_shared_store("scheduler", settings, tell) as role:
        parts = role.parts
        if is_asked_who_calls(settings) or await has_signing_key(parts.store):
            await parts.open_identity()
        scheduler = parts.start_scheduler()
        assert settings.listen_workers is not None, "a scheduler listens by default"
        gateway = await parts.open_gateway(settings.listen_workers, guarded=True)
        role.facts["workers"] = gateway.address
        if settings.via is not None:
            parts.open_broker_gateway(settings.via)
            role.facts["via"] = mask_url(settings.via)
        parts.exit.push_async_callback(_settle, scheduler, parts.clock)
        yield role


@asynccontextmanager
async def notifier_role(settings: Settings, tell: Tell) -> AsyncIterator[Role]:
    """A relay, on a store that others share."""
    if scheme_of(bus_url(settings)) == "memory":
        message = "memory: ends with this process, nobody would hear: leave it out, or name a bus"
        raise InvalidInput([Problem(path="--bus", message=message, code="bus")])
    async with _on_shared_store("notifier", settings, tell) as role:
        role.parts.start_relay()
        yield role


@asynccontextmanager
async def up_role(settings: Settings, tell: Tell) -> AsyncIterator[Role]:
    """Everything on one machine: the serving parts, and workers under a supervisor."""
    check_listening(settings)
    settings = await with_left_imports(settings, tell)
    system = Embedded(settings, resume=None, notify=tell)
    role = Role("up", system.parts, system.standing)
    async with role.answering(), system:
        if settings.workers:
            await system.workers_ready()
        if settings.reload:
            watching = Reloader(settings.imports, system.replace_workers, tell, system.clock)
            system.parts.begin(watching.run())
        pids = ", ".join(map(str, system.worker_pids))
        told = f"{settings.workers} of {settings.slots} slots (process {pids})"
        role.facts["workers"] = told if settings.workers else "none"
        role.facts["http"] = f"{system.http}{_login_hint(settings)}"
        if system.listens_on is not None:
            role.facts["listen"] = f"{system.listens_on}, for workers of other machines"
        yield role
        tell(f"letting running tasks finish, {settings.grace:g} s at most")


@asynccontextmanager
async def api_role(settings: Settings, tell: Tell) -> AsyncIterator[Role]:
    """The HTTP API, on a store that others share."""
    check_listening(settings)
    assert settings.listen is not None, "the API listens by default"
    async with _on_shared_store("api", settings, tell) as role:
        from tidemill.runtime.front import Front

        listener = listen_tcp(parse_endpoint(settings.listen))
        role.parts.exit.callback(listener.close)
        url = await Front(role.parts, role.standing.look).serve_tcp(listener)
        role.facts["http"] = f"{url}{_login_hint(settings)}"
        yield role


def _login_hint(settings: Settings) -> str:
    if settings.auth != SINGLE_USER:
        return ""
    return " (no login is needed: only this machine can reach it); try /docs"


@asynccontextmanager
async def _on_shared_store(name: str, settings: Settings, tell: Tell) -> AsyncIterator[Role]:
    if settings.store.path is not None:
        fix = "use postgresql://…, or `tidemill up`, which does all on one machine"
        message = f"{settings.store} is a SQLite file, which belongs to one process: {fix}"
        raise InvalidInput([Problem(path="--store", message=message, code="store")])
    parts = Parts(settings, tell)
    role = Role(name, parts)
    async with role.answering(), parts.exit:
        store = await parts.open_store()
        if settings.migrate:
            await parts.reached(lambda: store.migrate(tell))
        await parts.reached(lambda: check_schema(store, settings.store))
        for trouble in (await bus_trouble(settings), await via_trouble(settings)):
            if trouble:
                tell(trouble)
        yield role


async def _settle(scheduler: Scheduler, clock: Clock) -> None:
    """Grant nothing more, commit what workers have reported, and send them elsewhere."""
    scheduler.drain()
    deadline = clock.monotonic() + SETTLE_SECONDS
    while scheduler.owes_answers and clock.monotonic() < deadline:
        await clock.sleep(SETTLE_POLL_SECONDS)
    scheduler.dismiss()
