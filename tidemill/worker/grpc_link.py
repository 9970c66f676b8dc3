"""The link over gRPC, by unix socket or TCP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import grpc.aio

from tidemill.protocol.codec import (
    ATTACH,
    MESSAGE_BYTES_MAX,
    MalformedMessage,
    decode_scheduler_message,
    encode_worker_message,
)
from tidemill.protocol.messages import SchedulerMessage, WorkerMessage
from tidemill.worker.link import LinkLost

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Without it a new channel would inherit the pauses of the one that just failed.
    ("grpc.use_local_subchannel_pool", 1),
)


class GrpcLink:
    """A way to the scheduler behind `unix:PATH` or `HOST:PORT`; each stream is a connection."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._address = address
        self._credentials = credentials

    async def open(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Connect and exchange messages; every fault of the transport is a LinkLost."""
        async with self._channel() as channel:
            attach = channel.stream_stream(ATTACH, _as_it_is, _as_it_is)
            call = attach(_encoded(outgoing))
            try:
                async for data in call:
                    yield decode_scheduler_message(data)
            except grpc.aio.AioRpcError as error:
                raise LinkLost(f"{self._address}: {error.details()}") from error
            except MalformedMessage as error:
                raise LinkLost(f"{self._address}: {error}") from error
            finally:
                call.cancel()

    def _channel(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self._address, options=_OPTIONS)
        return grpc.aio.secure_channel(self._address, self._credentials, options=_OPTIONS)


def _as_it_is(data: bytes) -> bytes:
    """Messages are coded outside gRPC, which would hide what is wrong with a malformed one."""
    return data


async def _encoded(outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[bytes]:
    async for message in outgoing:
        yield encode_worker_message(message)
