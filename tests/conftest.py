"""Servers shared by all tests of a session, each started by the first test that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import pytest
from xdist.remote import Producer

from tests.servers import KafkaServer, PostgresServer, RedisServer, Server, missing
from tests.side_by_side import SideBySide, refuse_hidden_kafka

S = TypeVar("S", bound=Server)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SideBySide:
    """Hand out tests in our own way, whatever `--dist` says."""
    return SideBySide(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Look at the tests before they are handed out."""
    refuse_hidden_kafka(items)


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a real PostgreSQL; its databases are whoever's asks."""
    with _served("PostgreSQL", PostgresServer) as server:
        yield server.url


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """A real Kafka for those who restart it; whoever does leaves it running."""
    with _served("Kafka", KafkaServer) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_url(kafka_server: KafkaServer) -> str:
    """The address of a real Kafka: kafka://127.0.0.1:PORT."""
    return kafka_server.url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A real Redis for those who restart it; whoever does leaves it running."""
    with _served("Redis", RedisServer) as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: RedisServer) -> str:
    """The address of a real Redis: redis://127.0.0.1:PORT/0."""
    return redis_server.url


@contextmanager
def _served(name: str, make: Callable[[], S]) -> Iterator[S]:
    with ExitStack() as stack:
        try:
            server = make()
            stack.enter_context(server)
        except (OSError, RuntimeError, ValueError) as error:
            missing(name, error)
        yield server
