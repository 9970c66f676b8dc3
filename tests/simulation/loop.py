"""An event loop on virtual time: waiting costs nothing, the order of ready work is the seed's."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Protocol


class Host(Protocol):
    """What work runs on; work of a host that is down does not run."""

    alive: bool
    paused: bool

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep work of a paused or dead host."""


HOST: contextvars.ContextVar[Host | None] = contextvars.ContextVar("HOST", default=None)
"""The host of the running code; None for the simulator itself, which no fault touches."""


class Stuck(Exception):
    """The simulated world cannot go on: deadlock, or too many steps, or too much time."""


class SimLoop(asyncio.BaseEventLoop):
    """Runs ready work in shuffled order, and jumps to the next timer when nothing is ready."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]
    _stopping: bool
    _timer_cancelled_count: int

    def __init__(self, random: Random, *, seconds_max: float, steps_max: int) -> None:
        super().__init__()
        self._random = random
        self._now = 0.0
        self._seconds_max = seconds_max
        self._steps_max = steps_max
        self.steps = 0
        self._clock_resolution = 1e-9
        self._kept: list[asyncio.Task[Any]] = []
        self._generators: list[Any] = []
        self._kept_limit = 4_000

    def time(self) -> float:
        return self._now

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        # Every unfinished task is kept until the seed ends: one that were collected with its dead
        # host would run its `finally` blocks, which no killed process does.
        task = super().create_task(coro, **options)
        self._kept.append(task)
        if len(self._kept) > self._kept_limit:
            self._kept = [kept for kept in self._kept if not kept.done()]
            self._kept_limit = 2 * len(self._kept) + 4_000
        return task

    def call_outside(self, delay: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Call back as the simulator itself, whoever is running now."""
        return self.call_later(delay, callback, context=contextvars.Context())

    def abandon(self) -> None:
        """End the seed: whatever is unfinished is left so, without a word."""
        for task in self._kept:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            task._log_traceback = False
        self._ready.clear()
        self._scheduled.clear()
        self.close()

    def _run_once(self) -> None:
        self.steps += 1
        if self.steps > self._steps_max:
            raise Stuck(f"more than {self._steps_max} steps by second {self._now:.3f}")
        self._collect_due()
        batch = [handle for handle in self._ready if not handle._cancelled]
        self._ready.clear()
        if len(batch) > 1:
            self._random.shuffle(batch)
        for handle in batch:
            self._run_handle(handle)

    def _run_handle(self, handle: asyncio.Handle) -> None:
        if handle._cancelled:
            return
        host = handle._context.get(HOST)  # type: ignore[attr-defined]
        if host is None or (host.alive and not host.paused):
            handle._run()
        else:
            host.hold(handle)

    def _collect_due(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            self._drop(heapq.heappop(scheduled))
        if not self._ready and not self._stopping:
            if not scheduled:
                raise Stuck(f"deadlock: nothing left to wait for at second {self._now:.3f}")
            self._now = max(self._now, scheduled[0]._when)
            if self._now > self._seconds_max:
                raise Stuck(f"more than {self._seconds_max:g} simulated seconds")
        while scheduled and scheduled[0]._when <= self._now + self._clock_resolution:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            self._ready.append(handle)

    def _drop(self, handle: asyncio.TimerHandle) -> None:
        self._timer_cancelled_count -= 1
        handle._scheduled = False  # type: ignore[attr-defined]

    def _write_to_self(self) -> None:
        """Nothing to wake: there is one thread and no selector."""

    def _asyncgen_firstiter_hook(self, agen: Any) -> None:
        self._generators.append(agen)

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """Nothing: generators are kept to the seed's end, see `create_task`."""
