"""uvicorn inside a role: it listens where it is told, obeys no signals, and ends in good order."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from tidemill.api.app import Application
from tidemill.api.dispatch import encoder
from tidemill.api.problems import HttpError, details_of
from tidemill.protocol.certificates import check_key_pair
from tidemill.runtime.listening import BACKLOG

CONNECTIONS_MAX = 10_000
KEEP_ALIVE_SECONDS = 30
HEADER_SECONDS = 10.0
"""How long a client may take for the head of a request."""
HEAD_BYTES_MAX = 64 * 1024
BODY_SECONDS = 30.0
"""How long a client may be silent in the middle of a body."""
LINGER_SECONDS = 2.0
"""How long an answer waits to be read by somebody who is still sending."""
_REFUSAL = (
    b"%scontent-type: application/problem+json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
)


class _Transport:
    """A transport that sends the head of an answer and its body in one piece, not in two."""

    def __init__(self, transport: asyncio.Transport, protocol: _Protocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._held: list[bytes] = []
        self._lingering: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep what is written until the one who writes has to wait."""
        if not self._held:
            self._protocol.loop.call_soon(self._flush)
        self._held.append(data)

    def is_closing(self) -> bool:
        """Whether no more answers are sent."""
        return self._lingering is not None or self._transport.is_closing()

    def close(self) -> None:
        """Send what is held, and close.

        Closing on somebody who is still sending would take the answer away before it is read.
        """
        self._flush()
        if not self._protocol.is_receiving or self._transport.is_closing():
            self._transport.close()
        elif self._lingering is None:
            self._protocol.flow.resume_reading()
            if self._transport.can_write_eof():
                self._transport.write_eof()
            self._lingering = self._protocol.loop.call_later(LINGER_SECONDS, self._transport.close)

    def _flush(self) -> None:
        if self._held:
            data, self._held = b"".join(self._held), []
            self._transport.write(data)


class _Protocol(HttpToolsProtocol):
    """Leaves clients that do not finish a request: they hold a place for nothing."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Transport(transport, self)))
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._head_bytes = 0
        self._served: RequestResponseCycle | None = None
        self._expect(HEADER_SECONDS)

    @property
    def is_receiving(self) -> bool:
        """Whether more of a body is to come."""
        return self.cycle is not None and self.cycle.more_body

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # it was answered already
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._leave()
        elif self.is_receiving:
            self._expect(BODY_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._expect(HEADER_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else behind a body: nobody asks for them, and they have no bound
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._forget_timer()
        super().on_headers_complete()
        if self.parser.should_upgrade():  # which nobody does, and the parser reads no further
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        self._forget_timer()
        super().on_message_complete()
        self.cycle.more_body = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)
        if self._served is not None:  # with a request behind it, nobody else tells it
            self._served.disconnected = True
            self._served.message_event.set()
        self.pipeline.clear()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not HTTP/1.1 as it must be: see what was sent", "BAD_HTTP")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._served = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        pass

    def _expect(self, seconds: float) -> None:
        self._forget_timer()
        self._timer = self.loop.call_later(seconds, self._leave)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        self._timer = None
        if self._in_head:
            self.transport.abort()
        elif self.flow.read_paused:  # it is us who are slow
            self._expect(BODY_SECONDS)
        else:
            self._refuse(408, f"the body did not come within {BODY_SECONDS:g} s", "TIMEOUT")

    def _refuse(self, status: int, text: str, code: str) -> None:
        """Close, with an answer unless it would be taken for that of another request."""
        if self._may_answer():
            error = HttpError(status, text, code=code)
            body = encoder.encode(details_of(error, instance="", request_id=""))
            self.transport.write(_REFUSAL % (STATUS_LINE[status], len(body)) + body)
        self.transport.close()

    def _may_answer(self) -> bool:
        served = self._served
        if served is None or served.response_complete:
            return served is None or not served.more_body
        return served is self.cycle and served.more_body and not served.response_started


class _Server(uvicorn.Server):
    """Waits to be asked instead of looking ten times a second; signals are the role's."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.asked_to_exit = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        self.ready.set()
        await self.asked_to_exit.wait()


class HttpServer:
    """Serves one application on one socket."""

    def __init__(
        self, app: Application, listener: socket.socket, *, grace_seconds: float, **tls: Any
    ) -> None:
        self._app = app
        self._listener = listener
        self._grace_seconds = grace_seconds
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # what strangers send is not worth a line
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=round(grace_seconds + LINGER_SECONDS),
            **tls,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Answer from now on."""
        self._serving = asyncio.create_task(self._server.serve([self._listener]))
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait([ready, self._serving], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        """Take no more requests, end streams, let requests finish within the grace."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        self._app.services.stop()
        self._server.asked_to_exit.set()
        cut = asyncio.get_running_loop().call_later(self._grace_seconds, self._cut)
        await serving
        cut.cancel()

    def _cut(self) -> None:
        """Leave whoever has not finished: their handlers see them go, and end."""
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()


def tls_options(certificate: Path | None, key: Path | None) -> dict[str, str]:
    """What the server needs to speak HTTPS; nothing to go in the clear."""
    if certificate is None or key is None:
        return {}
    check_key_pair(certificate, key)
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
