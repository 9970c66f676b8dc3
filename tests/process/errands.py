"""Tasks for tests with roles apart, imported by workers; most of them misbehave on purpose."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from tests.chaos.work import mark
from tidemill.sdk.context import context


def errand(effects: str, hang: str) -> int:
    """Do something outside; the first grant hangs before or after it, until it is killed."""
    mark()
    first = context().token.epoch == 1
    if first and hang == "before":
        time.sleep(3_600)
    with Path(effects).open("a") as file:
        file.write(f"{context().idempotency_key} {context().token.epoch}\n")
    if first and hang == "after":
        time.sleep(3_600)
    return context().token.epoch


def nap(seconds: float) -> int:
    """Take some time."""
    mark()
    time.sleep(seconds)
    return context().token.epoch


def wait_for(gate: str) -> int:
    """Go on when the file is there."""
    mark()
    while not Path(gate).exists():
        time.sleep(0.02)
    return context().token.epoch


def deadlock() -> None:
    """Wait for oneself."""
    mark()
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


async def spin(seconds: float) -> int:
    """Compute on the event loop at the first grant, so that the worker falls silent."""
    mark()
    deadline = time.monotonic() + seconds
    while context().token.epoch == 1 and time.monotonic() < deadline:
        pass
    return context().token.epoch


def killed_for_memory() -> None:
    """End as the kernel ends a process when memory runs out."""
    mark()
    os.kill(os.getpid(), signal.SIGKILL)


def ignore_the_signal() -> None:
    """Run on whoever asks it to stop; in a process of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    mark()
    time.sleep(3_600)


async def ignore_the_cancel() -> None:
    """Run on whoever asks it to stop; on the event loop."""
    mark()
    while True:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            continue


def huge() -> str:
    """A result of a gigabyte."""
    return "x" * 10**9


def wrong(kind: str) -> Any:
    """A result that JSON or a store cannot hold."""
    return {"object": object(), "number": float("nan"), "text": "\ud800"}[kind]
