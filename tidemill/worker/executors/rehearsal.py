"""Executors that do nothing real: for trying things out, for tests and for measuring."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from tidemill.domain.workflow import PAYLOAD
from tidemill.sdk.context import Context
from tidemill.worker.executor import Call, Executor, Workshop, problems_of, read_params
from tidemill.worker.failures import TaskFailure

_CHUNK = 50_000  # iterations between two looks at the cancellation
_INLINE = 50_000  # so few iterations are over before a thread would have begun


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`noop`, `default`, `notify` and `transform` take none."""


class SleepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long to sleep."""

    seconds: Annotated[float, Meta(ge=0, le=31_536_000)]


class ComputeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much to compute."""

    iterations: Annotated[int, Meta(ge=0, le=10**12)] = 0


class FlakyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When to fail: by chance, or on exactly the first attempts."""

    failure_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    fail_attempts: Annotated[int, Meta(ge=0)] = 0


Shape = TypeVar("Shape", bound=msgspec.Struct)


class Imitation(Executor, Generic[Shape]):
    """Imitates work. What it is told comes from params, or from the payload of a job."""

    shape: type[Shape]
    waits_ms = (0, 0)  # a random wait between the two, both included

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Every param that is wrong or missing."""
        return problems_of(params, self.shape)

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """A payload may bring along what the params lack."""
        problems = self.check(params)
        if PAYLOAD not in inputs:
            return problems
        return [problem for problem in problems if not problem.endswith("is missing")]

    async def run(self, call: Call) -> Any:
        """Do as told."""
        return await self.act(call, read_params(self._told(call), self.shape))

    async def act(self, call: Call, told: Shape) -> Any:
        """What makes this kind of work special; as a rule it is just waiting."""
        await self.wait()

    async def wait(self) -> None:
        """Wait at random, without holding a thread."""
        least, most = self.waits_ms
        if most:
            wait = least + int(self._workshop.entropy.fraction() * (most - least + 1))
            await self._workshop.clock.sleep(wait / 1_000)

    def _told(self, call: Call) -> dict[str, Any]:
        """The params, and those fields of the payload that mean something here."""
        payload = call.inputs.get(PAYLOAD)
        if not isinstance(payload, dict):
            return call.params
        meant = {name: payload[name] for name in self.shape.__struct_fields__ if name in payload}
        return meant | call.params


class NoopExecutor(Imitation[NoParams]):
    """Returns null at once."""

    shape = NoParams


class DefaultExecutor(Imitation[NoParams]):
    """Work of some kind."""

    shape = NoParams
    waits_ms = (1, 50)


class NotifyExecutor(Imitation[NoParams]):
    """Telling somebody."""

    shape = NoParams
    waits_ms = (2, 11)


class TransformExecutor(Imitation[NoParams]):
    """Changing data; returns its payload."""

    shape = NoParams
    waits_ms = (3, 17)

    async def act(self, call: Call, told: NoParams) -> Any:
        """Hand the payload on."""
        await self.wait()
        return call.inputs.get(PAYLOAD)


class SleepExecutor(Imitation[SleepParams]):
    """Waits by the clock of the worker."""

    shape = SleepParams

    async def act(self, call: Call, told: SleepParams) -> None:
        """Wait."""
        await self._workshop.clock.sleep(told.seconds)


class ComputeExecutor(Imitation[ComputeParams]):
    """Keeps a core busy, in a thread when it is for long; stops when asked to."""

    shape = ComputeParams
    waits_ms = (5, 24)

    async def act(self, call: Call, told: ComputeParams) -> int:
        """Return a number that depends on every iteration."""
        if told.iterations <= _INLINE:
            number = _compute(told.iterations, call.context)
        else:
            threads = self._workshop.threads
            number = await threads.run(lambda: _compute(told.iterations, call.context))
        await self.wait()
        return number


class FlakyExecutor(Imitation[FlakyParams]):
    """Fails as often as it is told to."""

    shape = FlakyParams
    waits_ms = (1, 5)

    async def act(self, call: Call, told: FlakyParams) -> int:
        """Return the number of the attempt that succeeded."""
        await self.wait()
        attempt = call.context.attempt
        chance = self._workshop.entropy.fraction()
        if attempt <= told.fail_attempts or chance < told.failure_rate:
            raise TaskFailure("Flaky", f"attempt {attempt} fails, as it was told to")
        return attempt


def _compute(iterations: int, context: Context) -> int:
    value = 1
    for start in range(0, iterations, _CHUNK):
        context.raise_if_cancelled()
        for _ in range(start, min(start + _CHUNK, iterations)):
            value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value
