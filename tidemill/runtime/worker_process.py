"""A worker as a process of its own, the role behind `tidemill worker`.

Signals, exit codes, and its end when its parent ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.urls import mask_url
from tidemill.runtime.exit_status import REFUSED, USAGE, WORN_OUT
from tidemill.runtime.health import Health, HealthServer
from tidemill.runtime.logging_setup import log_to_stderr
from tidemill.runtime.loops import run_serving
from tidemill.runtime.offering import hide_settings, take_secrets, worker_environ
from tidemill.runtime.reaching import Reach, Unreachable
from tidemill.runtime.setting_kinds import shown
from tidemill.runtime.settings import Settings
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.runtime.tuning import settle_in_beside_user_code
from tidemill.runtime.worker_parts import Way, employ, make_way, worker_config
from tidemill.worker.broker_worker import BrokerWorker
from tidemill.worker.capture import capture_output
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Executor, Workshop
from tidemill.worker.library import ImportFailed, load_library
from tidemill.worker.link import WorkerRefused
from tidemill.worker.plugins import find_executors
from tidemill.worker.processes import Commands, die_with_parent
from tidemill.worker.shift import Departure
from tidemill.worker.threads import Threads
from tidemill.worker.watchdog import Watchdog
from tidemill.worker.worker import Worker

CLOSE_SECONDS = 2.0


def main(settings: Settings) -> NoReturn:
    """Be a worker until drained. Ends the process itself: a stuck thread must not keep it."""
    supervised = end_with_parent()
    # Nothing that user code could read tells where the store is, or what opens a gateway.
    way = make_way(settings)
    secrets = _forget_settings()
    log_to_stderr(settings.log_level, SystemClock())
    capture_output()
    try:
        workshop = _workshop(settings)
        executors = _offered(find_executors(workshop), settings.executors)
        config = worker_config(settings, executors, workshop.library, secrets)
    except (ImportFailed, InvalidInput) as error:
        _leave(USAGE, str(error))
    process = _Process(settings, workshop, executors, supervised)
    settle_in_beside_user_code()
    run_serving(process.serve(way, config))
    raise AssertionError("a worker leaves from inside its loop")


def _forget_settings() -> dict[str, str]:
    """Leave nothing in the environment that user code must not see; the secrets in it are kept."""
    hide_settings()
    kept = worker_environ(os.environ)
    secrets = take_secrets(kept)
    os.environ.clear()
    os.environ.update(kept)
    return secrets


def _workshop(settings: Settings) -> Workshop:
    return Workshop(
        clock=SystemClock(),
        entropy=SystemEntropy(),
        library=load_library(settings.imports),
        threads=Threads(settings.slots),
        commands=Commands(),
        result_bytes_max=settings.result_bytes_max,
    )


def _offered(executors: Mapping[str, Executor], wanted: Sequence[str]) -> dict[str, Executor]:
    unknown = [name for name in wanted if name not in executors]
    if unknown:
        known = ", ".join(sorted(executors))
        problems = [
            Problem(path="executors", message=f"{name} is not installed; known: {known}", code="x")
            for name in unknown
        ]
        raise InvalidInput(problems)
    return {name: executors[name] for name in wanted or executors}


class _Process:
    """The asynchronous part: the worker, its watchdog, its health."""

    def __init__(
        self,
        settings: Settings,
        workshop: Workshop,
        executors: Mapping[str, Executor],
        supervised: bool,
    ) -> None:
        self._settings = settings
        self._workshop = workshop
        self._executors = executors
        self._signals = _Signals(settings.grace, supervised)
        self._telling: asyncio.Task[None] | None = None  # asyncio itself holds no task

    async def serve(self, way: Way, config: WorkerConfig) -> NoReturn:
        """Work until drained, then leave."""
        worker = employ(way, config, self._executors, self._workshop)
        await self._reach_broker()
        self._signals.heed(worker)
        watchdog = Watchdog(lambda: worker.attempts, on_hang=partial(_leave, WORN_OUT))
        watchdog.start(asyncio.get_running_loop())
        await self._serve_health(worker)
        if not self._signals.supervised:
            _introduce(self._settings)
            self._telling = asyncio.create_task(_tell_welcome(worker, self._settings))
        try:
            departure = await worker.run()
        except WorkerRefused as error:
            _leave(REFUSED, f"the scheduler refused this worker: {error}")
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.gather(*(executor.close() for executor in self._executors.values()))
        _leave(WORN_OUT if departure is Departure.WORN_OUT else 0)

    async def _reach_broker(self) -> None:
        """Without its broker a worker has nothing to do; a scheduler it tries for ever."""
        url = self._settings.via
        if url is None:
            return
        from tidemill.runtime.probing import reach_broker

        reach = Reach(self._workshop.clock, self._settings.start_retry, _say)
        try:
            await reach.until("broker", url, lambda: reach_broker(url))
        except Unreachable as error:
            _leave(USAGE, f"error: {error}")

    async def _serve_health(self, worker: Worker | BrokerWorker) -> None:
        if self._settings.health is None:
            return
        from tidemill.runtime.probing import via_trouble

        async def look() -> Health:
            reasons = [
                "" if worker.is_welcome else "scheduler: not welcomed by any",
                await via_trouble(self._settings),
                "draining" if self._signals.draining else "",
            ]
            notes = [f"tasks: {len(worker.attempts)} running"]
            return Health(role="worker", reasons=[text for text in reasons if text], notes=notes)

        try:
            await HealthServer(self._settings.health, look).start()
        except OSError as error:
            _leave(USAGE, f"--health: {error}")


class _Signals:
    """SIGTERM drains, a second one ends at once; Ctrl-C does the same where nobody supervises."""

    def __init__(self, grace_seconds: float, supervised: bool) -> None:
        self._grace_seconds = grace_seconds
        self.supervised = supervised
        self._draining: asyncio.Task[None] | None = None

    @property
    def draining(self) -> bool:
        """Whether somebody asked the worker to end."""
        return self._draining is not None

    def heed(self, worker: Worker | BrokerWorker) -> None:
        """Listen from now on."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._drain, worker)
        if self.supervised:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            loop.add_signal_handler(signal.SIGINT, self._drain, worker)

    def _drain(self, worker: Worker | BrokerWorker) -> None:
        if self._draining is not None:
            _leave(128 + signal.SIGTERM)
        self._draining = asyncio.create_task(worker.drain(self._grace_seconds))


def end_with_parent() -> bool:
    """End this process when the parent is gone, if the parent holds the other end of our stdin.

    Returns whether it does. A worker whose standard input is a terminal, a file or nothing was
    started by hand or by a service manager, and outlives the shell it was started from.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:
        return False
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return False
    die_with_parent()
    # User code gets an empty standard input: nothing it reads may eat the end of the lifeline.
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_wait_for_end, args=(lifeline,), daemon=True).start()
    return True


def _wait_for_end(lifeline: int) -> None:
    while os.read(lifeline, 1_024):
        """Whatever the parent writes means nothing."""
    with suppress(OSError):
        os.write(2, b"standard input was closed, so the process that started this worker is gone\n")
    os._exit(1)


def _introduce(settings: Settings) -> None:
    """Tell a person what was started, as the other roles do."""
    way = ", ".join(settings.connect) if settings.via is None else mask_url(settings.via)
    _say(f"worker {settings.process_name} (process {os.getpid()}) connects to {way}")
    _say(f"  {'queues':8} {shown(settings.queues)}, {settings.slots} slots")
    for name, value in (("labels", settings.labels), ("imports", settings.imports)):
        if value:
            _say(f"  {name:8} {shown(value)}")
    if settings.health is not None:
        _say(f"  {'health':8} http://{settings.health}/ready")


async def _tell_welcome(worker: Worker | BrokerWorker, settings: Settings) -> None:
    await worker.welcomed()
    _say(f"worker {settings.process_name} serves")


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _leave(status: int, message: str = "") -> NoReturn:
    if message:
        _say(message)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
