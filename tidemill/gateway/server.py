"""The gRPC door: serves a Door, and whatever shares its address, on a unix socket or by TCP."""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias, cast

import grpc
import grpc.aio

from tidemill.domain.errors import Forbidden
from tidemill.domain.principals import Principal
from tidemill.gateway.gates import Gate, GateInterceptor, OpenGate, Still, current_caller
from tidemill.gateway.workers import check_worker
from tidemill.protocol.codec import (
    ATTACH,
    MESSAGE_BYTES_MAX,
    MalformedMessage,
    decode_worker_message,
    encode_scheduler_message,
)
from tidemill.protocol.door import Door
from tidemill.protocol.messages import Goodbye, Refused, SchedulerMessage, WorkerMessage

AnyHandler: TypeAlias = "grpc.GenericRpcHandler[Any, Any]"
Encode: TypeAlias = Callable[[SchedulerMessage], bytes]

_log = logging.getLogger("tidemill.gateway")

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Two owners of one address must not share it silently.
    ("grpc.so_reuseport", 0),
    # The protocol's own pings notice a dead peer within 3 s. These end its connection, which may be
    # stuck in a write, and allow the same to the other side.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
)

RPCS_MAX = 10_000
"""Streams and calls at once; more are turned away."""


class GatewayServer:
    """Accepts worker streams and hands them to the door. More services may share the address.

    No call of any service is answered before the gate has let it in. That of a unix socket in a
    private folder is open: who may come is decided by the file system.
    """

    def __init__(
        self,
        door: Door,
        address: str,
        *,
        handlers: Sequence[AnyHandler] = (),
        credentials: grpc.ServerCredentials | None = None,
        gate: Gate | None = None,
        encode: Encode = encode_scheduler_message,
    ) -> None:
        self.address = address
        self._credentials = credentials
        gate = gate or OpenGate()
        self._interceptors = (GateInterceptor(gate),)
        self._handlers = (_AttachHandler(door, encode, gate), *handlers)
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen; OSError when the address cannot be had."""
        server = grpc.aio.server(
            handlers=self._handlers,
            interceptors=self._interceptors,
            options=_OPTIONS,
            maximum_concurrent_rpcs=RPCS_MAX,
        )
        try:
            port = self._bind(server)
        except RuntimeError as error:
            # gRPC does not say which.
            why = "it is in use, may not be used, or is no address of this machine"
            raise OSError(errno.EADDRNOTAVAIL, why, self.address) from error
        if not self.address.startswith("unix:"):
            self.address = f"{self.address.rpartition(':')[0]}:{port}"
        await server.start()
        self._server = server

    async def stop(self, grace_seconds: float) -> None:
        """Take no more streams, and end the open ones after the grace; safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace_seconds)

    def _bind(self, server: grpc.aio.Server) -> int:
        if self._credentials is None:
            return server.add_insecure_port(self.address)
        return server.add_secure_port(self.address, self._credentials)


class _AttachHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Bytes in and out: messages are decoded here, so that a malformed one has a typed end."""

    def __init__(self, door: Door, encode: Encode, gate: Gate) -> None:
        self._door = door
        self._encode = encode
        self._gate = gate

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if handler_call_details.method != ATTACH:
            return None
        return grpc.stream_stream_rpc_method_handler(self._attach)

    async def _attach(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        still = self._gate.watch(context.invocation_metadata() or ())
        incoming = _Incoming(requests, current_caller(), still)
        outgoing = cast(AsyncGenerator[SchedulerMessage, None], self._door.attach(incoming))
        try:
            async with aclosing(outgoing):
                async for message in outgoing:
                    yield self._encode(message)
        except Forbidden as error:
            _log.warning("a worker is refused: %s", error)
            yield self._encode(Refused(str(error)))
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
        if incoming.problem is not None:
            await context.abort(*incoming.problem)


class _Incoming:
    """The worker's messages. Whatever happens to the stream is its end, nothing else; only of the
    first message it may be said that whoever sends it may not: Forbidden."""

    def __init__(self, requests: AsyncIterator[bytes], caller: Principal, still: Still) -> None:
        self.problem: tuple[grpc.StatusCode, str] | None = None
        self._requests = aiter(requests)
        self._caller = caller
        self._still = still
        self._greeted = False

    def __aiter__(self) -> AsyncIterator[WorkerMessage]:
        return self

    async def __anext__(self) -> WorkerMessage:
        if self.problem is not None:
            raise StopAsyncIteration
        try:
            message = decode_worker_message(await anext(self._requests))
            return self._permitted(message) if await self._still() else self._dismissed()
        except MalformedMessage as error:
            self.problem = grpc.StatusCode.INVALID_ARGUMENT, str(error)
        except grpc.RpcError as error:
            _log.info("a worker's stream broke: %s", error)
        if self.problem is not None:
            _log.warning("a worker's stream is ended: %s", self.problem[1])
        raise StopAsyncIteration

    def _permitted(self, message: WorkerMessage) -> WorkerMessage:
        if not self._greeted:
            check_worker(self._caller, message)
            self._greeted = True
        return message

    def _dismissed(self) -> WorkerMessage:
        """A stream lives long: a credential that is withdrawn meanwhile ends it.

        The worker leaves as if by its own will, and so what it holds goes elsewhere at once.
        """
        self.problem = grpc.StatusCode.UNAUTHENTICATED, "the token is not known here any more"
        _log.warning("a worker's stream is ended: %s", self.problem[1])
        return Goodbye()
