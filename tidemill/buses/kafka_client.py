"""What every client of a Kafka cluster needs: its settings, its troubles, its quiet."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from tidemill.buses.kafka_address import KafkaAddress
from tidemill.domain.errors import InvalidInput, Problem, Unavailable

# The largest message of the worker protocol, and room for its envelope.
MESSAGE_BYTES_MAX = 8 * 1024 * 1024 + 64 * 1024
TOPIC_NAME_MAX = 249
CLOSE_SECONDS = 10.0
"""How long a client may take to end: beyond the 6 s after which a group forgets a member."""

Settings = dict[str, Any]
Client = TypeVar("Client")
logger = logging.getLogger(__name__)
_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")


class Troubles:
    """What the client library last complained about, in its own words."""

    def __init__(self, address: KafkaAddress) -> None:
        self._place = ",".join(address.servers)
        self._last: KafkaError | None = None

    @property
    def any(self) -> bool:
        """Whether something went wrong since the last good news."""
        return self._last is not None

    def note(self, error: KafkaError) -> None:
        """Remember; the library repeats itself, so this is told at debug level only."""
        logger.debug("Kafka at %s: %s", self._place, error.str())
        self._last = error

    def forget(self) -> None:
        """Good news: the cluster answered."""
        self._last = None

    def unavailable(self, error: KafkaError | str) -> Unavailable:
        """The same for people, with the likely cause."""
        told = error if isinstance(error, str) else error.str()
        cause = self._last.str() if self._last is not None else ""
        more = f" ({cause})" if cause and cause != told else ""
        return Unavailable(f"Kafka at {self._place}: {told}{more}")


class QuietLog:
    """Takes the client library's log lines, which repeat while a broker is away."""

    def log(self, level: int, message: str, *parts: object) -> None:
        """Pass a line on, at debug level whatever its own is."""
        logger.debug(message, *parts)


def client_settings(address: KafkaAddress, troubles: Troubles) -> Settings:
    """Settings that producers, consumers and administrators share."""
    settings: Settings = {
        "bootstrap.servers": ",".join(address.servers),
        "client.id": "tidemill",
        "error_cb": troubles.note,
        "logger": QuietLog(),
        "log_level": 4,
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 2_000,
        "socket.connection.setup.timeout.ms": 5_000,
        "socket.keepalive.enable": True,
        "socket.nagle.disable": True,
        "topic.metadata.refresh.interval.ms": 30_000,
        "security.protocol": _protocol(address),
    }
    files = {
        "ssl.ca.location": address.authority_file,
        "ssl.certificate.location": address.certificate_file,
        "ssl.key.location": address.key_file,
    }
    settings |= {name: value for name, value in files.items() if value is not None}
    if address.user is not None:
        settings["sasl.mechanism"] = address.mechanism
        settings["sasl.username"] = address.user
        settings["sasl.password"] = address.password
    return settings


def _protocol(address: KafkaAddress) -> str:
    transport = "SSL" if address.encrypted else "PLAINTEXT"
    return transport if address.user is None else f"SASL_{transport}"


def connected(kind: Callable[[Settings], Client], settings: Settings) -> Client:
    """A client of some kind, which connects by itself; InvalidInput when a setting is wrong."""
    try:
        return kind(settings)
    except KafkaException as error:
        told = reason_of(error).str()
        raise InvalidInput([Problem(path="kafka", message=told, code="settings")]) from error


async def ended(event: asyncio.Event, what: str) -> None:
    """Wait for a thread that ends its client; the library may hang there, and nobody with it."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await event.wait()
    except TimeoutError:
        logger.warning("Kafka: %s did not end within %g s and is left behind", what, CLOSE_SECONDS)


def topic_name(prefix: str, topic: str) -> str:
    """The full name of a topic: what Kafka does not allow in names is spelled in hexadecimal."""
    name = f"{prefix}.{_ILLEGAL.sub(_spell, topic)}"
    if len(name) <= TOPIC_NAME_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[: TOPIC_NAME_MAX - len(digest) - 1]}-{digest}"


def _spell(found: re.Match[str]) -> str:
    return "".join(f"-{byte:02x}" for byte in found.group().encode())


def reason_of(error: KafkaException) -> KafkaError:
    """What the library has to say about an exception of its own."""
    reason = error.args[0]
    assert isinstance(reason, KafkaError), "the library wraps a KafkaError in each exception"
    return reason
