"""The gRPC door: serves a Door on a unix socket or a TCP address."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias, cast

import grpc
import grpc.aio

from tidemill.protocol.codec import (
    ATTACH,
    MESSAGE_BYTES_MAX,
    MalformedMessage,
    decode_worker_message,
    encode_scheduler_message,
)
from tidemill.protocol.door import Door
from tidemill.protocol.messages import SchedulerMessage, WorkerMessage

AnyHandler: TypeAlias = "grpc.GenericRpcHandler[Any, Any]"

_log = logging.getLogger("tidemill.gateway")

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Two owners of one address must not share it silently.
    ("grpc.so_reuseport", 0),
)


class GatewayServer:
    """Accepts worker streams and hands them to the door. More services may share the address."""

    def __init__(
        self,
        door: Door,
        address: str,
        *,
        handlers: Sequence[AnyHandler] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._handlers = (_AttachHandler(door), *handlers)
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        """Listen; OSError when the address cannot be had."""
        server = grpc.aio.server(handlers=self._handlers, options=_OPTIONS)
        try:
            port = self._bind(server)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {self.address}: {error}") from error
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

    def __init__(self, door: Door) -> None:
        self._door = door

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if handler_call_details.method != ATTACH:
            return None
        return grpc.stream_stream_rpc_method_handler(self._attach)

    async def _attach(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        incoming = _Incoming(requests)
        outgoing = cast(AsyncGenerator[SchedulerMessage, None], self._door.attach(incoming))
        async with aclosing(outgoing):
            async for message in outgoing:
                yield encode_scheduler_message(message)
        if incoming.problem is not None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(incoming.problem))


class _Incoming:
    """The worker's messages. Whatever happens to the stream is its end, nothing else."""

    def __init__(self, requests: AsyncIterator[bytes]) -> None:
        self.problem: MalformedMessage | None = None
        self._requests = aiter(requests)

    def __aiter__(self) -> AsyncIterator[WorkerMessage]:
        return self

    async def __anext__(self) -> WorkerMessage:
        if self.problem is not None:
            raise StopAsyncIteration
        try:
            return decode_worker_message(await anext(self._requests))
        except MalformedMessage as problem:
            _log.warning("a worker sent %s", problem)
            self.problem = problem
        except grpc.RpcError as error:
            _log.info("a worker's stream broke: %s", error)
        raise StopAsyncIteration
