"""Executors by name, from the entry points of every installed package."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tidemill.worker.executor import Call, Executor, Workshop
from tidemill.worker.failures import TaskFailure

GROUP = "tidemill.executors"


def find_executors(workshop: Workshop) -> dict[str, Executor]:
    """Every installed executor; the code of each is loaded when it is first needed."""
    return {point.name: PluginExecutor(point, workshop) for point in entry_points(group=GROUP)}


class PluginExecutor(Executor):
    """Stands for an executor until somebody uses it: a worker starts without loading them all."""

    def __init__(self, point: EntryPoint, workshop: Workshop) -> None:
        self._point = point
        self._workshop = workshop
        self._loaded: Executor | None = None

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Ask the real one."""
        return self._load().check(params)

    def rehearse(self, params: Mapping[str, Any], inputs: Collection[str]) -> list[str]:
        """Ask the real one."""
        return self._load().rehearse(params, inputs)

    async def run(self, call: Call) -> Any:
        """Let the real one run it."""
        return await self._load().run(call)

    async def close(self) -> None:
        """Close the real one, if there is one."""
        if self._loaded is not None:
            await self._loaded.close()

    def _load(self) -> Executor:
        if self._loaded is None:
            try:
                self._loaded = self._point.load()(self._workshop)
            except Exception as error:
                raise TaskFailure(
                    "ExecutorBroken",
                    f"executor {self._point.name!r} ({self._point.value}) cannot be loaded: "
                    f"{type(error).__name__}: {error}",
                ) from error
        return self._loaded
