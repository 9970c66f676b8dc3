"""The worker's session over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest

from tests.roles.worker_stage import QUICK, Doing, ScriptedDoor, a_token, an_assignment
from tidemill.domain.events import Succeeded
from tidemill.gateway.server import GatewayServer
from tidemill.ports.entropy import Entropy
from tidemill.protocol.codec import ATTACH
from tidemill.protocol.messages import Hello, Logs, LogText, WorkerMessage
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Call
from tidemill.worker.grpc_link import GrpcLink
from tidemill.worker.link import LinkLost
from tidemill.worker.worker import Worker


@asynccontextmanager
async def a_gateway(address: str) -> AsyncIterator[tuple[ScriptedDoor, GatewayServer]]:
    door = ScriptedDoor()
    server = GatewayServer(door, address)
    await server.start()
    try:
        yield door, server
    finally:
        await server.stop(0)


class FirstChoice(SystemEntropy):
    """Chance that prefers the first of whatever there is."""

    def fraction(self) -> float:
        return 0.0


class LastChoice(SystemEntropy):
    """Chance that prefers the last."""

    def fraction(self) -> float:
        return 0.999


@asynccontextmanager
async def a_worker(*addresses: str, entropy: Entropy | None = None) -> AsyncIterator[Worker]:
    async def number(call: Call) -> int:
        return 42

    config = WorkerConfig(name="w1", slots=4, **QUICK)
    links = [GrpcLink(address) for address in addresses]
    chance = entropy or FirstChoice()
    worker = Worker(config, links, {"do": Doing(number)}, SystemClock(), chance)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def hello_then_silence() -> AsyncIterator[WorkerMessage]:
    yield Hello(worker="w1", slots=1)
    await asyncio.Event().wait()


async def test_a_task_travels_over_a_unix_socket(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/gate"
    async with a_gateway(address) as (door, _), a_worker(address):
        stream = await door.next_stream()
        await stream.hello()
        stream.welcome()
        stream.assign(an_assignment())

        outcome = await stream.outcome()

    assert outcome.report == Succeeded(1, b"42")


async def test_a_tcp_port_is_chosen_where_none_is_given() -> None:
    async with a_gateway("127.0.0.1:0") as (door, server), a_worker(server.address):
        stream = await door.next_stream()

        assert (await stream.hello()).worker == "w1"


async def test_a_worker_waits_for_a_scheduler_that_is_not_there_yet(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/gate"
    async with a_worker(address):
        await asyncio.sleep(0.05)
        async with a_gateway(address) as (door, _):
            hello = await (await door.next_stream()).hello()

    assert hello.worker == "w1"


async def test_a_worker_moves_to_another_scheduler_with_its_outcomes(tmp_path: Path) -> None:
    one, two = f"unix:{tmp_path}/one", f"unix:{tmp_path}/two"
    async with a_gateway(one) as (first, server), a_gateway(two) as (second, _), a_worker(one, two):
        stream = await first.next_stream()
        stream.welcome()
        stream.assign(an_assignment())
        outcome = await stream.outcome()
        await server.stop(0)

        hello = await (await second.next_stream()).hello()

    assert (hello.session, hello.finished) == ("s1", (outcome,))


async def test_chance_decides_which_scheduler_a_worker_begins_with(tmp_path: Path) -> None:
    one, two = f"unix:{tmp_path}/one", f"unix:{tmp_path}/two"
    async with (
        a_gateway(one) as (first, _),
        a_gateway(two) as (second, _),
        a_worker(one, two, entropy=LastChoice()),
    ):
        assert (await (await second.next_stream()).hello()).worker == "w1"
        assert first.streams.empty()


async def test_a_malformed_message_ends_its_stream_and_no_other(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/gate"
    async with (
        a_gateway(address) as (door, _),
        grpc.aio.insecure_channel(address) as channel,
        a_worker(address),
    ):
        stream = await door.next_stream()
        call = channel.stream_stream(ATTACH, None, None)(iter([b"\xff\xff\xff"]))
        broken = await door.next_stream()
        await broken.ended.wait()
        broken.hang_up()

        assert await call.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert (await stream.hello()).worker == "w1"


async def test_no_server_is_a_lost_link(tmp_path: Path) -> None:
    link = GrpcLink(f"unix:{tmp_path}/nobody")

    with pytest.raises(LinkLost, match="nobody"):
        await anext(aiter(link.open(hello_then_silence())))


async def test_closing_the_answers_ends_the_stream_for_the_scheduler(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/gate"
    async with a_gateway(address) as (door, _):
        answers = GrpcLink(address).open(hello_then_silence())
        first = asyncio.ensure_future(anext(aiter(answers)))
        stream = await door.next_stream()
        stream.welcome()
        await first
        await answers.aclose()  # type: ignore[attr-defined]

        await asyncio.wait_for(stream.ended.wait(), 2)


async def test_a_slow_scheduler_holds_the_worker_back(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/gate"
    sent = 0

    async def flood() -> AsyncIterator[WorkerMessage]:
        nonlocal sent
        yield Hello(worker="w1", slots=1)
        while True:
            sent += 1
            yield Logs((LogText(a_token(), "x" * 1_000_000),))

    class DeafDoor(ScriptedDoor):
        async def attach(self, incoming):  # type: ignore[no-untyped-def]
            await anext(incoming)
            await asyncio.Event().wait()
            yield

    server = GatewayServer(DeafDoor(), address)
    await server.start()
    reading = asyncio.ensure_future(anext(aiter(GrpcLink(address).open(flood()))))
    await asyncio.sleep(0.5)
    reading.cancel()
    await asyncio.wait([reading])
    await server.stop(0)

    assert sent < 20


async def test_an_address_in_use_is_an_error_that_names_it() -> None:
    async with a_gateway("127.0.0.1:0") as (_, server):
        with pytest.raises(OSError, match=server.address):
            await GatewayServer(ScriptedDoor(), server.address).start()
