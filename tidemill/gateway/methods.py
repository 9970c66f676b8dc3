"""Methods of services: bytes in, bytes out, and an error as the status that it means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from tidemill.domain.errors import InvalidInput, Problem, TidemillError
from tidemill.gateway.errors import status_of

AnyContext: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
AnyHandler: TypeAlias = "grpc.GenericRpcHandler[Any, Any]"
Request = TypeVar("Request", bound=Message)


def unary(answer: Callable[[bytes], Awaitable[Message]]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method that answers one request with one message."""

    async def serve(data: bytes, context: AnyContext) -> bytes:
        try:
            reply = await answer(data)
        except TidemillError as error:
            await abort(context, error)
            raise
        serialized: bytes = reply.SerializeToString()
        return serialized

    return grpc.unary_unary_rpc_method_handler(serve)


async def abort(context: AnyContext, error: TidemillError) -> None:
    """End a call with the status of an error."""
    await context.abort(status_of(error), str(error))


def parsed(kind: type[Request], data: bytes) -> Request:
    """The request; InvalidInput for bytes that are none."""
    request = kind()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        text = f"is no {kind.DESCRIPTOR.name}"
        raise InvalidInput([Problem(path="request", message=text, code="query")]) from error
    return request
