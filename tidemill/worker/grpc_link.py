"""The link over gRPC, by unix socket or TCP, in the clear or by TLS."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.protocol.certificates import check_key_pair, read_certificates, read_pem
from tidemill.protocol.codec import (
    ATTACH,
    MESSAGE_BYTES_MAX,
    MalformedMessage,
    decode_scheduler_message,
    encode_worker_message,
)
from tidemill.protocol.messages import SchedulerMessage, WorkerMessage
from tidemill.worker.link import LinkLost, WorkerRefused

DETAIL_CHARACTERS_MAX = 300

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Without it a new channel would inherit the pauses of the one that just failed.
    ("grpc.use_local_subchannel_pool", 1),
    # A worker reaches what it was told to reach, and nothing that its environment puts between.
    ("grpc.enable_http_proxy", 0),
    # The worker opens its streams anew by itself; to do it, gRPC would keep every message.
    ("grpc.enable_retries", 0),
    # The protocol's own pings notice a dead peer within 3 s; these end its connection.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)
_TOKEN = re.compile(r"[\x21-\x7e]{1,512}")

# What gRPC and the TLS library say, and what it means to the person who must mend it.
_TROUBLE = (
    (re.compile(r"CERTIFICATE_VERIFY_FAILED:? ?([^:]*)"), "its certificate is not trusted"),
    (re.compile(r"(?i)hostname verification|peer name"), "its certificate is for another name"),
    (re.compile(r"WRONG_VERSION_NUMBER"), "it does not speak TLS"),
    (
        re.compile(r"parsing HTTP/2|ALPN"),
        "it does not speak gRPC: is this the port for workers (7300 by default)?",
    ),
    (re.compile(r"ALERT_CERTIFICATE|ALERT_UNKNOWN_CA|ALERT_BAD"), "it refused our certificate"),
)
_UNREACHED = re.compile(
    r"failed to connect to all addresses; last error: \w+: \S+: (?:Failed to connect[^:]*: )?"
)
_CLOSED = "Socket closed"  # all that a client hears of many a handshake that failed


class ChannelSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker knows its scheduler and is known by it. PEM texts, read once.

    TLS is used when `tls` is set; without `ca` the certificates of the machine are trusted.
    """

    tls: bool = False
    ca: bytes | None = None
    certificate: bytes | None = None  # of the worker, where schedulers ask for one
    key: bytes | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return f"ChannelSecurity(tls={self.tls}, token={'***' if self.token else None})"


def read_security(
    *,
    tls: bool = False,
    ca: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    token: str | None = None,
) -> ChannelSecurity:
    """Read PEM files and check the token; InvalidInput names what cannot be used."""
    if (certificate is None) != (key is None):
        raise _invalid("tls-cert, tls-key", "a certificate and its key belong together: give both")
    if token is not None and not _TOKEN.fullmatch(token):
        raise _invalid("token", "must be 1 to 512 visible ASCII characters without spaces")
    if certificate is not None and key is not None:
        check_key_pair(certificate, key)
    return ChannelSecurity(
        tls=tls or ca is not None or certificate is not None,
        ca=None if ca is None else read_certificates(ca),
        certificate=None if certificate is None else read_pem(certificate),
        key=None if key is None else read_pem(key),
        token=token,
    )


class GrpcLink:
    """A way to the scheduler behind `unix:PATH` or `HOST:PORT`; each stream is a connection."""

    def __init__(self, address: str, security: ChannelSecurity | None = None) -> None:
        self._address = address
        self._security = security or ChannelSecurity()

    def __str__(self) -> str:
        return self._address

    async def open(self, outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[SchedulerMessage]:
        """Connect and exchange messages; every fault of the transport is a LinkLost.

        A refused token is a WorkerRefused: the same token will be refused again.
        """
        async with self._channel() as channel:
            attach = channel.stream_stream(ATTACH, _as_it_is, _as_it_is)
            call = attach(_encoded(outgoing), metadata=self._metadata())
            try:
                async for data in call:
                    yield decode_scheduler_message(data)
            except grpc.aio.AioRpcError as error:
                raise self._trouble(error) from error
            except MalformedMessage as error:
                raise LinkLost(f"{self._address}: {error}") from error
            finally:
                call.cancel()

    def _channel(self) -> grpc.aio.Channel:
        security = self._security
        if not security.tls:
            return grpc.aio.insecure_channel(self._address, options=_OPTIONS)
        credentials = grpc.ssl_channel_credentials(security.ca, security.key, security.certificate)
        return grpc.aio.secure_channel(self._address, credentials, options=_OPTIONS)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._security.token
        return () if token is None else (("authorization", f"Bearer {token}"),)

    def _trouble(self, error: grpc.aio.AioRpcError) -> LinkLost | WorkerRefused:
        if error.code() is grpc.StatusCode.UNAUTHENTICATED:
            if self._security.token is None:
                return WorkerRefused(f"the scheduler at {self._address} wants a token")
            return WorkerRefused(f"the scheduler at {self._address} refused the token")
        return LinkLost(f"{self._address}: {self._reason(error.details() or error.code().name)}")

    def _reason(self, details: str) -> str:
        reason = _in_one_line(details)
        refused = _UNREACHED.search(details) and _CLOSED in reason
        if not refused or self._address.startswith("unix:"):
            return reason
        if not self._security.tls:
            return f"{reason} (does it want TLS?)"
        if self._security.certificate is None:
            return f"{reason} (does it want a certificate of the worker?)"
        return f"{reason} (does it trust the certificate of the worker?)"


def _in_one_line(details: str) -> str:
    """What a person can use of what gRPC and its TLS library say."""
    for pattern, meaning in _TROUBLE:
        found = pattern.search(details)
        if found is not None:
            more = found.group(1).strip(" .\"'") if found.groups() else ""
            return f"{meaning} ({more})" if more else meaning
    return _UNREACHED.sub("", " ".join(details.split()))[:DETAIL_CHARACTERS_MAX]


def _as_it_is(data: bytes) -> bytes:
    """Messages are coded outside gRPC, which would hide what is wrong with a malformed one."""
    return data


async def _encoded(outgoing: AsyncIterator[WorkerMessage]) -> AsyncIterator[bytes]:
    async for message in outgoing:
        yield encode_worker_message(message)


def _invalid(path: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=path, message=message, code="security")])
