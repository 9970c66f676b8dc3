"""Real servers for tests, on this machine alone, in temporary folders."""

from __future__ import annotations

import os

import pytest

from tests.servers.kafka import KafkaServer
from tests.servers.postgres import POSTGRES_OPTIONS, PostgresServer, postgres_server
from tests.servers.process import Server
from tests.servers.redis import RedisServer

__all__ = [
    "POSTGRES_OPTIONS",
    "KafkaServer",
    "PostgresServer",
    "RedisServer",
    "Server",
    "missing",
    "postgres_server",
]


def missing(server: str, error: Exception) -> None:
    """Skip what needs a server that cannot be had, or fail where all of them must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{server} could not be started: {error}")
    pytest.skip(f"{server} could not be started: {error}")
