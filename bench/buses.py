"""The servers that carry hints: started when first asked for."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count

from bench.results import BusName, Settings
from tests.servers import KafkaServer, RedisServer

# As it comes: what is on the bus may be lost, the store decides.
REDIS_SETTINGS = {"redis_appendonly": "no"}


class Buses:
    """One server of each kind for as long as the harness runs."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._numbers = count(1)
        self._kafka: KafkaServer | None = None
        self._redis: RedisServer | None = None

    def fresh(self, name: BusName) -> tuple[str, Settings]:
        """The address of a bus that nobody has used yet, and what there is to know about it."""
        match name:
            case "none":
                return "memory:", {}
            case "redis":
                redis = self._redis = self._redis or self._stack.enter_context(_redis())
                return f"{redis.url}?prefix=bench{next(self._numbers)}", REDIS_SETTINGS
            case "kafka":
                kafka = self._kafka = self._kafka or self._stack.enter_context(KafkaServer())
                kind = "Apache Kafka" if kafka.durable else "stand-in"
                return f"{kafka.url}/bench{next(self._numbers)}", {"kafka": kind}


def _redis() -> RedisServer:
    return RedisServer(appendonly=False)
