"""A stage for executor tests: calls with a voice that remembers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.roles.worker_stage import a_token
from tidemill.sdk.context import Context, FakeVoice, enter_context
from tidemill.worker.executor import Call, Executor
from tidemill.worker.failures import failure_of
from tidemill.worker.results import EncodedResult


def a_call(
    params: dict[str, Any],
    inputs: dict[str, Any] | None = None,
    voice: FakeVoice | None = None,
    attempt: int = 1,
) -> Call:
    context = Context(
        token=a_token(3, epoch=2),
        workflow="orders",
        task="pay",
        attempt=attempt,
        voice=voice or FakeVoice(),
    )
    return Call(params, inputs or {}, context)


async def run(executor: Executor, call: Call) -> Any:
    """As a worker runs it: in a task of its own, with its context."""

    async def work() -> Any:
        enter_context(call.context)
        try:
            return await executor.run(call)
        except SystemExit as error:  # which would end the loop
            return error

    value = await asyncio.create_task(work())
    if isinstance(value, SystemExit):
        raise value
    return value.data if isinstance(value, EncodedResult) else value


async def failure(executor: Executor, call: Call) -> tuple[str, bool, str]:
    """Type, finality and message of a failed call."""
    try:
        value = await run(executor, call)
    except (Exception, SystemExit) as error:
        failed = failure_of(error, 1)
        return failed.error.type, failed.final, failed.error.message
    raise AssertionError(f"no failure but {value!r}")


async def eventually(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether something that nobody announces comes true in time."""
    for _ in range(round(seconds / 0.01)):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


async def pid_in(path: Path) -> int:
    """The process id that a task writes to a file, once it is there."""
    assert await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(_read(path))


async def is_gone(pid: int) -> bool:
    """Whether a process ends within a moment; one that nobody has reaped is gone as well."""
    return await eventually(lambda: not _runs(pid), seconds=5)


def _read(path: Path) -> str:
    return path.read_text()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False
