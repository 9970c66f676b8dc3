"""Runs a peer's driver in the peer's own environment, and turns its answer into samples."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from bench.peers.environments import environment_of, version_of
from bench.peers.redis import redis_server
from bench.results import Sample
from bench.stage import Measure, Stage

DRIVERS = Path(__file__).with_name("drivers")
SECONDS_MAX = 1_800.0
END_SECONDS = 1.0
LOOK_SECONDS = 0.05
LINE_BYTES_MAX = 1 << 20
TOKEN_NAME = "TIDEMILL_BENCH_PEER"
SAID_CHARACTERS_MAX = 3_000


class Message(msgspec.Struct, frozen=True):
    """One line of a driver: progress, or at the end everything."""

    say: str = ""
    samples: tuple[Sample, ...] = ()


def on_postgres(peer: str) -> Measure:
    """Measures a peer on an empty database."""

    async def measure(stage: Stage) -> list[Sample]:
        python = _prepare(peer, stage)
        async with stage.fresh_store() as (address, settings):
            assert address.dsn is not None
            stage.settings |= settings
            return await _drive(Driver(peer, python), address.dsn, stage)

    return measure


def on_its_own(peer: str) -> Measure:
    """Measures a peer that brings its store along."""

    async def measure(stage: Stage) -> list[Sample]:
        return await _drive(Driver(peer, _prepare(peer, stage)), "", stage)

    return measure


def on_redis(peer: str) -> Measure:
    """Measures a peer on a Redis as it comes, then on one that writes to its disk each second."""

    async def measure(stage: Stage) -> list[Sample]:
        python = _prepare(peer, stage)
        samples = list[Sample]()
        for variant in ("", "everysec"):
            with redis_server(everysec=bool(variant)) as (url, settings):
                measured = await _drive(Driver(peer, python, variant), url, stage)
            samples += [msgspec.structs.replace(one, settings=one.settings | settings)
                        for one in measured]  # fmt: skip
        return samples

    return measure


@dataclass(frozen=True)
class Driver:
    """A script for one peer; `variant` tells of which server it shall speak."""

    peer: str
    python: Path
    variant: str = ""

    @property
    def script(self) -> Path:
        """Named so that it does not hide the package that it imports."""
        return DRIVERS / f"{self.peer}_driver.py"


def _prepare(peer: str, stage: Stage) -> Path:
    stage.settings |= {"version": version_of(peer)}
    return environment_of(peer, stage.say)


async def _drive(driver: Driver, url: str, stage: Stage) -> list[Sample]:
    with tempfile.TemporaryDirectory(prefix="tidemill-peer-") as name, _family() as token:
        folder = Path(name)
        order = {"url": url, "folder": name, "quick": stage.quick, "repeats": stage.repeats}
        order |= {"variant": driver.variant}
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                driver.python, driver.script, msgspec.json.encode(order).decode(),
                env=_environment(driver.python, folder, token), stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=log, limit=LINE_BYTES_MAX,
            )  # fmt: skip
        async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as group:
            listening = group.create_task(_listen(process, stage))
            group.create_task(_end_orphans(process, token))
        if process.returncode != 0 or not (samples := listening.result()):
            said = (folder / "log").read_text(errors="replace")[-SAID_CHARACTERS_MAX:]
            raise RuntimeError(f"the driver of {driver.peer} ended ({process.returncode}): {said}")
        return samples


async def _end_orphans(process: Process, token: str) -> None:
    """What a driver leaves behind holds its pipe, and would be listened to for ever."""
    while process.returncode is None:  # noqa: ASYNC110 - `wait` would wait for the pipe too
        await asyncio.sleep(LOOK_SECONDS)
    _end_all(token)


async def _listen(process: Process, stage: Stage) -> list[Sample]:
    samples = list[Sample]()
    async for line in _lines(process):
        message = msgspec.json.decode(line, type=Message)
        samples += message.samples
        if message.say:
            stage.say(message.say)
    return samples


async def _lines(process: Process) -> AsyncIterator[bytes]:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        yield line


def _environment(python: Path, home: Path, token: str) -> dict[str, str]:
    """Nothing of ours reaches the peer; what it keeps at home goes with the folder."""
    return {
        "PATH": f"{python.parent}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        TOKEN_NAME: token,
    }


@contextmanager
def _family() -> Iterator[str]:
    """A token that every process of the driver inherits; those that have it end with the block."""
    token = secrets.token_hex(16)
    try:
        yield token
    finally:
        _end_all(token)


def _end_all(token: str) -> None:
    """Until there is none: one that is ended may have begun another just before."""
    while members := [one for one in psutil.process_iter() if _has(one, token)]:
        for member in members:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(members, timeout=END_SECONDS)


def _has(process: psutil.Process, token: str) -> bool:
    with suppress(psutil.Error, OSError):
        return bool(process.environ().get(TOKEN_NAME) == token and process.is_running())
    return False
