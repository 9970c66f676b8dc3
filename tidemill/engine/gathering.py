"""Gathering: what many ask at once becomes one question.

While a batch is under way the next one gathers, so batches grow with the load by themselves, and
whoever asks alone waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from tidemill.domain.errors import TidemillError, Unavailable

T = TypeVar("T")
R = TypeVar("R")

BATCH_MAX = 2_000
WAITING_MAX = 20_000


class Gatherer(Generic[T, R]):
    """Answers single questions in batches; `work` returns one answer per question, in order.

    An answer that is a TidemillError is raised to whoever asked. When `work` itself fails, all
    questions of the batch fail with it. Items weigh 1 unless `weigh` says otherwise; a batch weighs
    at most `batch_max`, or holds a single item.
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], Awaitable[Sequence[R | TidemillError]]],
        *,
        batch_max: int = BATCH_MAX,
        waiting_max: int = WAITING_MAX,
        at_once: int = 1,
        weigh: Callable[[T], int] | None = None,
    ) -> None:
        self._work = work
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._at_once = at_once
        self._weigh = weigh
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._loops: set[asyncio.Task[None]] = set()
        self._closed = False

    async def ask(self, item: T) -> R:
        """The answer; Unavailable with the code OVERLOADED when too many wait already."""
        return await self.put(item)

    def put(self, item: T) -> asyncio.Future[R]:
        """Ask, and wait for the answer later. Whoever forgets the future loses its error."""
        if self._closed:
            raise Unavailable("this process is about to stop: ask another one")
        if len(self._waiting) >= self._waiting_max:
            text = f"{self._waiting_max:,} requests wait already: try again in a moment"
            raise Unavailable(text, code="OVERLOADED")
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if len(self._loops) < self._at_once:
            loop = asyncio.create_task(self._drain())
            self._loops.add(loop)
        return answer

    @property
    def waiting(self) -> int:
        """How many questions are not being worked on yet."""
        return len(self._waiting)

    async def close(self) -> None:
        """Take no more questions, and answer those that are there; safe to call twice."""
        self._closed = True
        if self._loops:
            await asyncio.wait(list(self._loops))

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._next_batch())
        finally:
            # Here and not in a callback: whoever was answered may ask again before that runs, and
            # must not count on a loop that is about to end.
            self._loops = {loop for loop in self._loops if loop is not asyncio.current_task()}

    async def _answer(self, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        work = self._work([item for item, _ in batch])
        (found,) = await asyncio.gather(work, return_exceptions=True)
        results: Sequence[R | BaseException] = (
            [found] * len(batch) if isinstance(found, BaseException) else found
        )
        for (_, answer), result in zip(batch, results, strict=True):
            _tell(answer, result)

    def _next_batch(self) -> list[tuple[T, asyncio.Future[R]]]:
        batch: list[tuple[T, asyncio.Future[R]]] = []
        weight = 0
        while self._waiting:
            item = self._waiting[0][0]
            weight += self._weigh(item) if self._weigh is not None else 1
            if batch and weight > self._batch_max:
                break
            batch.append(self._waiting.popleft())
        return batch


def _tell(answer: asyncio.Future[R], result: R | BaseException) -> None:
    if answer.done():
        return  # whoever asked has gone
    if isinstance(result, asyncio.CancelledError):
        answer.set_exception(Unavailable("cut short: try again"))
    elif isinstance(result, BaseException):
        answer.set_exception(result)
    else:
        answer.set_result(result)
