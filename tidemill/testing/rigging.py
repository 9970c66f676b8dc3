"""Executors that do as the test says: fail on demand, answer for a task, remember every call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from tidemill.worker.executor import Call, Executor
from tidemill.worker.threads import Threads

T = TypeVar("T")

Failures: TypeAlias = int | BaseException | Sequence[BaseException | None]
"""So many failing attempts, or one error for all of them, or what each attempt raises in turn."""

FAILURES_MAX = 1_000_000


class InjectedFailure(Exception):
    """Raised in place of a task that the test wants to fail."""


@dataclass(frozen=True, slots=True)
class TaskCall:
    """One attempt of a task."""

    task: str
    attempt: int
    inputs: Mapping[str, Any]


class Rig:
    """What a test says about tasks, by their ids."""

    def __init__(
        self, fail: Mapping[str, Failures], stub: Mapping[str, Any], secrets: Mapping[str, str]
    ) -> None:
        self.calls: list[TaskCall] = []
        self.secrets = secrets
        self._errors = {task: _errors(task, wish) for task, wish in fail.items()}
        self._stub = stub

    def error_for(self, task: str) -> BaseException | None:
        """What the next attempt of a task raises, if the test wants it to."""
        return next(self._errors[task], None) if task in self._errors else None

    def stub_for(self, task: str) -> tuple[Any] | None:
        """What stands in for a task."""
        return (self._stub[task],) if task in self._stub else None


def _errors(task: str, wish: Failures) -> Iterator[BaseException | None]:
    match wish:
        case BaseException():
            yield from (wish for _ in range(FAILURES_MAX))
        case int():
            yield from (InjectedFailure(f"{task} fails, as the test wants") for _ in range(wish))
        case _:
            yield from wish


class RiggedExecutor(Executor):
    """Runs tasks, unless the test has other plans."""

    def __init__(self, real: Executor, rig: Rig) -> None:
        self._real = real
        self._rig = rig

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """As the real one does."""
        return self._real.check(params)

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """As the real one does."""
        return self._real.rehearse(params, inputs)

    async def run(self, call: Call) -> Any:
        """Fail, answer in place of the task, or let it run."""
        task = call.context.task
        self._rig.calls.append(TaskCall(task, call.context.attempt, dict(call.inputs)))
        if (error := self._rig.error_for(task)) is not None:
            raise error
        if (stub := self._rig.stub_for(task)) is None:
            return await self._real.run(call)
        if not callable(stub[0]):
            return stub[0]
        value = stub[0](**call.inputs)
        return await value if inspect.isawaitable(value) else value

    async def close(self) -> None:
        """As the real one does."""
        await self._real.close()


class NoThreads(Threads):
    """Runs functions on the loop itself: in a test there is nothing else to hold up."""

    def __init__(self) -> None:
        super().__init__(0)

    async def run(self, work: Callable[[], T]) -> T:
        """Call it here and now."""
        return work()


__all__ = ["Failures", "InjectedFailure", "NoThreads", "Rig", "RiggedExecutor", "TaskCall"]
