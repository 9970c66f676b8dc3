"""A worker as a process of its own: `python -m tidemill.runtime.worker_process --help`.

Arguments, signals, exit codes, and its end when its parent ends.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NoReturn

from tidemill.domain.errors import InvalidInput
from tidemill.runtime.exit_status import REFUSED, USAGE, WORN_OUT
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.worker.capture import capture_output
from tidemill.worker.config import WorkerConfig
from tidemill.worker.executor import Workshop
from tidemill.worker.grpc_link import GrpcLink
from tidemill.worker.library import ImportFailed, load_library
from tidemill.worker.link import Link, WorkerRefused
from tidemill.worker.plugins import find_executors
from tidemill.worker.processes import Commands, die_with_parent
from tidemill.worker.threads import Threads
from tidemill.worker.watchdog import Watchdog
from tidemill.worker.worker import Departure, Worker

CLOSE_SECONDS = 2.0


def main(arguments: Sequence[str]) -> NoReturn:
    """Be a worker until drained. Ends the process itself: a stuck thread must not keep it."""
    options = _parser().parse_args(arguments)
    supervised = end_with_parent()
    capture_output()
    try:
        config = _config(options)
        workshop = Workshop(
            clock=SystemClock(),
            entropy=SystemEntropy(),
            library=load_library(options.imports),
            threads=Threads(config.slots),
            commands=Commands(),
            result_bytes_max=config.result_bytes_max,
        )
    except (ImportFailed, InvalidInput) as error:
        _leave(USAGE, str(error))
    links = [GrpcLink(address) for address in options.addresses]
    asyncio.run(_serve(config, workshop, links, _Signals(options.grace_seconds, supervised)))
    raise AssertionError("a worker leaves from inside its loop")


async def _serve(
    config: WorkerConfig, workshop: Workshop, links: Sequence[Link], signals: _Signals
) -> NoReturn:
    executors = find_executors(workshop)
    worker = Worker(config, links, executors, workshop.clock, workshop.entropy)
    signals.heed(worker)
    watchdog = Watchdog(lambda: worker.attempts, on_hang=partial(_leave, WORN_OUT))
    watchdog.start(asyncio.get_running_loop())
    try:
        departure = await worker.run()
    except WorkerRefused as error:
        _leave(REFUSED, f"the scheduler refused this worker: {error}")
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await asyncio.gather(*(executor.close() for executor in executors.values()))
    _leave(WORN_OUT if departure is Departure.WORN_OUT else 0)


class _Signals:
    """SIGTERM drains, a second one ends at once; Ctrl-C does the same where nobody supervises."""

    def __init__(self, grace_seconds: float, supervised: bool) -> None:
        self._grace_seconds = grace_seconds
        self._supervised = supervised
        self._draining: asyncio.Task[None] | None = None

    def heed(self, worker: Worker) -> None:
        """Listen from now on."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._drain, worker)
        if self._supervised:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            loop.add_signal_handler(signal.SIGINT, self._drain, worker)

    def _drain(self, worker: Worker) -> None:
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
    os._exit(1)


def _leave(status: int, message: str = "") -> NoReturn:
    if message:
        print(message, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _config(options: argparse.Namespace) -> WorkerConfig:
    return WorkerConfig(
        name=options.name or f"{socket.gethostname()}-{os.getpid()}",
        slots=options.slots,
        queues=tuple(options.queues.split(",")),
        labels=dict(options.labels),
        result_bytes_max=options.result_bytes_max,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidemill-worker", description="Run tasks.")
    add = parser.add_argument
    add(
        "--address",
        dest="addresses",
        action="append",
        required=True,
        help="a scheduler: unix:PATH or HOST:PORT; give several to have a choice",
    )
    add("--slots", type=int, default=64, help="how many tasks run at once")
    add("--queues", default="default", help="queues to serve, separated by commas")
    add("--label", dest="labels", action="append", default=[], type=_label, help="NAME=VALUE")
    add("--name", help="how the worker is shown; host and process id if not given")
    add(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE|FILE",
        help="where the functions of python tasks live",
    )
    add("--result-bytes-max", type=int, default=256 * 1024)
    add("--grace-seconds", type=float, default=30.0, help="what tasks get to finish on SIGTERM")
    return parser


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


if __name__ == "__main__":
    main(sys.argv[1:])
