"""Whether the servers behind a URL can be reached at all, without knowing what they are."""

from __future__ import annotations

import asyncio

from tidemill.domain.errors import Unavailable
from tidemill.domain.urls import mask_url
from tidemill.runtime.addresses import parse_endpoint, scheme_of
from tidemill.runtime.settings import Settings
from tidemill.runtime.wiring import bus_url

PROBE_SECONDS = 2.0
PORTS = {"kafka": 9092, "redis": 6379, "rediss": 6379, "postgresql": 5432, "postgres": 5432}


async def bus_trouble(settings: Settings) -> str:
    """What is wrong with the way to the bus, in a line; empty when nothing is."""
    url = bus_url(settings)
    if url == settings.store.dsn or await answers(url):
        return ""
    return f"bus: {mask_url(url)} cannot be reached; works on the store alone"


async def via_trouble(settings: Settings) -> str:
    """What is wrong with the way to the other side of a broker; empty when nothing is."""
    if settings.via is None or await answers(settings.via):
        return ""
    return f"via: {mask_url(settings.via)} cannot be reached; workers behind it get nothing"


async def reach_broker(url: str) -> None:
    """Unavailable while no server of a broker takes connections."""
    if not await answers(url):
        raise Unavailable("no connection")


async def answers(url: str) -> bool:
    """Whether one of the servers of a URL takes connections; always for what needs none."""
    found = _endpoints(url)
    return not found or any(await asyncio.gather(*(_answers(*one) for one in found)))


def _endpoints(url: str) -> list[tuple[str, int]]:
    """Hosts and ports of a URL; none for memory and unix sockets."""
    port = PORTS.get(scheme_of(url))
    hosts = url.partition("://")[2].partition("?")[0].rpartition("@")[2].partition("/")[0]
    if port is None or not hosts:
        return []
    return [_endpoint(host, port) for host in hosts.split(",") if host]


def _endpoint(text: str, port: int) -> tuple[str, int]:
    try:
        return parse_endpoint(text)
    except ValueError:
        return text.strip("[]"), port


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
