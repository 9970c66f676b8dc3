"""A Redis for peers that live on it: as it comes, or with its log written each second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from redis import Redis

from bench.results import Settings
from tests.servers import RedisServer

RECORDED = ("appendonly", "appendfsync", "save")
DEFAULT_SAVE = "3600 1 300 100 60 10000"  # the server of the tests takes no snapshots


@contextmanager
def redis_server(*, everysec: bool) -> Iterator[tuple[str, Settings]]:
    """The address of an empty server, and the settings that it says it runs with."""
    with RedisServer(appendonly=everysec) as server:
        with closing(Redis.from_url(server.url, decode_responses=True)) as client:
            client.config_set("appendfsync", "everysec")
            client.config_set("save", DEFAULT_SAVE)
            settings = {f"redis_{name}": client.config_get(name)[name] for name in RECORDED}
            settings |= {"redis_version": client.info("server")["redis_version"]}
        yield server.url, settings
