"""What a worker process is made of: its configuration and its ways to schedulers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.routes import OFFERS_MAX, PYTHON
from tidemill.ports.broker import Broker
from tidemill.protocol.broker_messages import HEARTBEAT_OFFERS_MAX
from tidemill.runtime.addresses import is_private
from tidemill.runtime.settings import SILENT_PINGS, Settings
from tidemill.runtime.wiring import open_broker
from tidemill.sdk.secrets import NOT_FOUND, NOT_OVER_BROKER, SecretSources
from tidemill.worker.broker_worker import RESULT_BYTES_MAX, BrokerWorker
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Executor, Workshop
from tidemill.worker.grpc_link import ChannelSecurity, GrpcLink, read_security
from tidemill.worker.library import Library
from tidemill.worker.link import Link
from tidemill.worker.worker import Worker


def worker_config(
    settings: Settings,
    executors: Collection[str],
    library: Library,
    secrets: dict[str, str],
) -> WorkerConfig:
    """What a worker offers, and its bounds. Of Python it offers what it could import, no more."""
    functions = {PYTHON: library.names()} if PYTHON in executors else {}
    _check_offer(settings, executors, functions)
    return WorkerConfig(
        name=settings.process_name,
        slots=settings.slots,
        queues=settings.queues,
        labels=dict(settings.labels),
        functions=functions,
        secrets=SecretSources(
            environment=secrets,
            directory=str(settings.secrets_dir.resolve()) if settings.secrets_dir else None,
            trouble=NOT_FOUND if settings.via is None else NOT_OVER_BROKER,
        ),
        result_bytes_max=settings.result_bytes_max,
        ping_seconds=settings.ping_seconds,
        silence_seconds=SILENT_PINGS * settings.ping_seconds,
    )


def _check_offer(
    settings: Settings, executors: Collection[str], functions: Mapping[str, Sequence[str]]
) -> None:
    count = sum(map(len, functions.values()))
    if not count and not set(executors) - functions.keys():
        message = "offer nothing: python needs functions, import some with --import"
        raise InvalidInput([Problem(path="--executors", message=message, code="nothing")])
    most = OFFERS_MAX if settings.via is None else HEARTBEAT_OFFERS_MAX
    if count > most:
        where = "" if settings.via is None else " over a broker"
        message = f"has {count} functions, and a worker may offer {most}{where}: import fewer"
        raise InvalidInput([Problem(path="--import", message=message, code="too_many")])


Way: TypeAlias = Sequence[Link] | Broker
"""How a worker gets its work: from schedulers that it connects to, or over a broker."""


def make_way(settings: Settings) -> Way:
    """The way to the schedulers; nothing is connected yet."""
    if settings.via is not None and settings.connect:
        message = "a worker has one way to its schedulers: give --via or --connect, not both"
        raise InvalidInput([Problem(path="--via", message=message, code="conflict")])
    if settings.via is None:
        return make_links(settings)
    if settings.result_bytes_max > RESULT_BYTES_MAX:
        message = f"is {settings.result_bytes_max}, and one message holds {RESULT_BYTES_MAX} bytes"
        raise InvalidInput([Problem(path="--result-bytes-max", message=message, code="too_large")])
    return open_broker(settings.via)


def employ(
    way: Way, config: WorkerConfig, executors: Mapping[str, Executor], workshop: Workshop
) -> Worker | BrokerWorker:
    """The worker that goes this way."""
    if isinstance(way, Sequence):
        return Worker(config, way, executors, workshop.clock, workshop.entropy)
    return BrokerWorker(config, way, executors, workshop.clock, workshop.entropy)


def make_links(settings: Settings) -> Sequence[Link]:
    """A way to each scheduler; any of them will do."""
    if not settings.connect:
        message = (
            "is missing: name a scheduler, such as --connect 127.0.0.1:7300, "
            "or a broker, such as --via kafka://127.0.0.1:9092"
        )
        raise InvalidInput([Problem(path="--connect", message=message, code="missing")])
    security = _security(settings)
    return [GrpcLink(address, _fitting(address, security)) for address in settings.connect]


def _security(settings: Settings) -> ChannelSecurity:
    public = [address for address in settings.connect if not is_private(address)]
    token = settings.token or _first_token(settings)
    if public and token is None and not settings.insecure:
        message = f"{public[0]} is another machine: give --token-file or TIDEMILL_TOKEN, "
        problem = Problem(path="--connect", message=message + "or --insecure", code="security")
        raise InvalidInput([problem])
    return read_security(
        # Without a CA of its own, the machine's are trusted: never in the clear by accident.
        tls=bool(public) and not settings.insecure,
        ca=settings.tls_ca,
        certificate=settings.tls_cert,
        key=settings.tls_key,
        token=token,
    )


def _first_token(settings: Settings) -> str | None:
    if settings.token_file is None:
        return None
    from tidemill.gateway.security import read_tokens

    return read_tokens(settings.token_file)[0]


def _fitting(address: str, security: ChannelSecurity) -> ChannelSecurity | None:
    """A private socket needs neither TLS nor a token."""
    return None if address.startswith("unix:") else security
