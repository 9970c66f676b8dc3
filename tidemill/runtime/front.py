"""The HTTP API of a process: what its handlers work with, and the sockets it is served on."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from tidemill.api.app import build_app
from tidemill.api.limits import Limiter
from tidemill.api.opening import duties_of, make_services
from tidemill.api.security import Authenticator, LoopbackGuard, Security, SingleUser
from tidemill.api.services import HealthReport, Services
from tidemill.domain.identifiers import RunId
from tidemill.protocol.messages import ProgressReport
from tidemill.runtime.addresses import Endpoint, parse_endpoint
from tidemill.runtime.health import Health
from tidemill.runtime.http_server import HttpServer, tls_options
from tidemill.runtime.identity_parts import IdentityParts, tell_how_to_begin
from tidemill.runtime.job_types import job_types
from tidemill.runtime.listening import listen_unix
from tidemill.runtime.parts import Parts
from tidemill.runtime.setting_checks import SINGLE_USER

Look = Callable[[], Awaitable[Health]]


class Front:
    """Serves the API until the parts end; what is served on several sockets is one and the same."""

    def __init__(self, parts: Parts, look: Look) -> None:
        self._parts = parts
        self._look = look
        self.services = self._open_services()

    async def serve_tcp(self, listener: socket.socket) -> str:
        """Serve where others may connect, with the guards that the settings ask for."""
        settings = self._parts.settings
        tls = tls_options(settings.tls_cert, settings.tls_key)
        endpoint = Endpoint(*listener.getsockname()[:2])
        security = await self._security(endpoint)
        server = HttpServer(
            build_app(self.services, security),
            listener,
            grace_seconds=settings.grace,
            **tls,
        )
        await self._begin(server)
        return f"{'https' if tls else 'http'}://{endpoint}"

    async def serve_unix(self, path: Path) -> None:
        """Serve for this user alone: the file system keeps everybody else away."""
        await self._open_identity()
        single = Security(authenticator=SingleUser(self._parts.store))
        app = build_app(self.services, single)
        server = HttpServer(app, listen_unix(path), grace_seconds=self._parts.settings.grace)
        await self._begin(server)

    async def _begin(self, server: HttpServer) -> None:
        await server.start()
        self._parts.exit.push_async_callback(server.stop)

    def _open_services(self) -> Services:
        parts = self._parts
        services = make_services(parts.store, parts.bus, parts.clock, parts.entropy, job_types())
        services.progress, services.health = self._progress, self._health
        services.sealing = parts.sealing
        parts.exit.push_async_callback(services.submissions.close)
        if parts.relay is not None:
            services.following.settle_beside(parts.relay)
            parts.relay.settle_beside(services.following)
        for duty in duties_of(services):
            parts.begin(duty)
        return services

    async def _security(self, endpoint: Endpoint) -> Security:
        settings = self._parts.settings
        single = settings.auth == SINGLE_USER
        limited = settings.rate_limit > 0 and not single
        named = parse_endpoint(settings.listen or str(endpoint)).host
        return Security(
            authenticator=await self._authenticator(),
            guard=LoopbackGuard(port=endpoint.port, hosts=frozenset({_in_url(named)}))
            if single
            else None,
            limiter=Limiter(self._parts.clock, settings.rate_limit) if limited else None,
            cors_origins=frozenset(settings.cors_origins),
            tls=settings.tls_cert is not None,
        )

    async def _authenticator(self) -> Authenticator:
        parts = self._parts
        identity = await self._open_identity()
        if parts.settings.auth == SINGLE_USER:
            return SingleUser(parts.store)
        await tell_how_to_begin(parts.store, parts.entropy, parts.settings, parts.tell)
        return identity.authenticator

    async def _open_identity(self) -> IdentityParts:
        identity = await self._parts.open_identity()
        self.services.identity = identity.identity
        return identity

    def _progress(self, run_id: RunId) -> tuple[ProgressReport, ...]:
        scheduler = self._parts.scheduler
        if scheduler is None:
            return ()
        return tuple(one for key, one in scheduler.progress().items() if key.run_id == run_id)

    async def _health(self) -> HealthReport:
        found = await self._look()
        notes = [*found.notes, *self.services.following.health()]
        return HealthReport(role=found.role, reasons=found.reasons, notes=notes)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()
