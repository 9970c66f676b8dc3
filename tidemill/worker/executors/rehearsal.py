"""Executors that do nothing real: for trying things out, for tests and for measuring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidemill.sdk.context import Context
from tidemill.worker.executor import Call, Executor, Workshop, problems_of, read_params
from tidemill.worker.failures import TaskFailure

_CHUNK = 50_000  # iterations between two looks at the cancellation


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`noop` takes none."""


class SleepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long to sleep."""

    seconds: Annotated[float, Meta(ge=0, le=31_536_000)]


class ComputeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much to compute."""

    iterations: Annotated[int, Meta(ge=0, le=10**12)]


class FlakyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When to fail: by chance, or on exactly the first attempts."""

    failure_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    fail_attempts: Annotated[int, Meta(ge=0)] = 0


class NoopExecutor(Executor):
    """Returns null at once."""

    def __init__(self, workshop: Workshop) -> None:
        """Needs nothing."""

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Refuse any param."""
        return problems_of(params, NoParams)

    async def run(self, call: Call) -> None:
        """Do nothing."""
        if call.params:
            read_params(call.params, NoParams)


class SleepExecutor(Executor):
    """Waits by the clock of the worker."""

    def __init__(self, workshop: Workshop) -> None:
        self._clock = workshop.clock

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Needs `seconds`."""
        return problems_of(params, SleepParams)

    async def run(self, call: Call) -> None:
        """Wait."""
        await self._clock.sleep(read_params(call.params, SleepParams).seconds)


class ComputeExecutor(Executor):
    """Keeps a core busy, in a thread; stops when asked to."""

    def __init__(self, workshop: Workshop) -> None:
        self._threads = workshop.threads

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Needs `iterations`."""
        return problems_of(params, ComputeParams)

    async def run(self, call: Call) -> int:
        """Return a number that depends on every iteration."""
        iterations = read_params(call.params, ComputeParams).iterations
        return await self._threads.run(lambda: _compute(iterations, call.context))


class FlakyExecutor(Executor):
    """Fails as often as it is told to."""

    def __init__(self, workshop: Workshop) -> None:
        self._entropy = workshop.entropy

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Takes `failure_rate` or `fail_attempts`."""
        return problems_of(params, FlakyParams)

    async def run(self, call: Call) -> int:
        """Return the number of the attempt that succeeded."""
        params = read_params(call.params, FlakyParams)
        attempt = call.context.attempt
        if attempt <= params.fail_attempts or self._entropy.fraction() < params.failure_rate:
            raise TaskFailure("Flaky", f"attempt {attempt} fails, as it was told to")
        return attempt


def _compute(iterations: int, context: Context) -> int:
    value = 1
    for start in range(0, iterations, _CHUNK):
        context.raise_if_cancelled()
        for _ in range(start, min(start + _CHUNK, iterations)):
            value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value
