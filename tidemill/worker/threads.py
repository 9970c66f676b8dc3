"""Threads for user code that blocks: one for each running call, reused, never waited for."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
_Job: TypeAlias = Callable[[], None]


class Threads:
    """Daemon threads, at most `count_max`: one that never ends must not keep the process alive."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._count = 0
        self._idle = 0
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Call `work` in a thread, with the caller's context variables.

        Cancelling does not end the wait: a thread cannot be stopped, and its slot is taken until
        it ends by itself. Cancelling twice does, for a loop that is shutting down.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        self._submit(lambda: context.run(_settle, work, future, loop))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if future.cancelled():
                raise
        await asyncio.wait([future])
        return future.result()

    def _submit(self, job: _Job) -> None:
        self._jobs.put(job)
        with self._lock:
            if self._idle > 0:
                self._idle -= 1  # here and not in the thread, so that no two jobs count on it
                return
            if self._count == self._count_max:
                return
            self._count += 1
            name = f"task-{self._count}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
            with self._lock:
                self._idle += 1


def _settle(
    work: Callable[[], Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop
) -> None:
    error: BaseException | None = None
    result = None
    try:
        result = work()
    except BaseException as raised:  # noqa: BLE001  (SystemExit in user code ends the task alone)
        error = raised
    try:
        loop.call_soon_threadsafe(_tell, future, result, error)
    except RuntimeError:
        """The loop is closed: nobody waits any more."""


def _tell(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        # asyncio refuses it in a future, since it would end a coroutine silently.
        future.set_exception(RuntimeError(f"the task raised StopIteration: {error}"))
    else:
        future.set_exception(error)
