"""Starting runs, finding them, following them to their end, and steering them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from msgspec import UNSET

from tidemill.client.calls import Calls, place
from tidemill.client.connection import Request
from tidemill.client.errors import RunFailed
from tidemill.domain.run import RunState
from tidemill.domain.workflow import Workflow
from tidemill.protocol.resources import (
    ResultView,
    RetriedView,
    RunView,
    StartedView,
    StartRun,
    TaskDetails,
    TaskView,
)

WAIT_SECONDS = 30.0
"""How long one request waits for the end of a run; the next one goes on waiting."""


class RunFilters(TypedDict, total=False):
    """Which runs to list; all that is given must hold."""

    state: Sequence[str]
    workflow: str
    kind: Sequence[str]
    label: str  # NAME=VALUE
    created_after: datetime
    created_before: datetime
    text: str  # a part of the id, the key or the workflow's name
    sort: str


class StartOptions(TypedDict, total=False):
    """What a start may say besides the workflow and its input."""

    key: str  # the same key names the same run; made by the client when not given
    labels: Mapping[str, str]
    version: int  # of a deployed workflow; the latest when not given


class RunCalls(Calls):
    """Runs and their tasks."""

    async def start(
        self,
        workflow: str | Workflow,
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the word that the API has
        **options: Unpack[StartOptions],
    ) -> StartedView:
        """Start a workflow by its name, or one that is sent along, and return once it is stored."""
        request = StartRun(
            workflow=workflow if isinstance(workflow, str) else UNSET,
            definition=workflow if isinstance(workflow, Workflow) else UNSET,
            version=options.get("version", UNSET),
            input=dict(input or {}),
            key=options.get("key") or self.connection.system.fresh_key(),
            labels=dict(options.get("labels", {})),
        )
        return await self._post(place("runs"), StartedView, request)

    def runs(
        self, limit: int | None = None, **filters: Unpack[RunFilters]
    ) -> AsyncIterator[RunView]:
        """Runs, newest first, asked for page by page."""
        return self._pages(place("runs"), RunView, filters, limit)

    async def run(self, run_id: str, *, include: Sequence[str] = ()) -> RunView:
        """One run; `include` may name input, result and waits."""
        return await self._get(place("runs", run_id), RunView, {"include": include})

    def tasks(self, run_id: str, limit: int | None = None) -> AsyncIterator[TaskView]:
        """The tasks of a run, in the order of its definition."""
        return self._pages(place("runs", run_id, "tasks"), TaskView, {}, limit)

    async def task(self, run_id: str, task: str) -> TaskDetails:
        """One task with its attempts, what it printed, and its result."""
        return await self._get(place("runs", run_id, "tasks", task), TaskDetails)

    async def outcome(self, run_id: str) -> ResultView:
        """What a run has led to so far."""
        return await self._get(place("runs", run_id, "result"), ResultView)

    async def wait(self, run_id: str, timeout: float | None = None) -> RunView:
        """The run as it ended; TimeoutError when it has not after so many seconds."""
        system = self.connection.system
        deadline = None if timeout is None else system.monotonic() + timeout
        while True:
            left = None if deadline is None else deadline - system.monotonic()
            run = await self._wait_once(run_id, WAIT_SECONDS if left is None else left)
            if run.ended:
                return run
            if left is not None and left <= WAIT_SECONDS:
                raise TimeoutError(f"run {run_id} is {run.state} after {timeout:g} s")

    async def _wait_once(self, run_id: str, seconds: float) -> RunView:
        seconds = max(0.0, min(seconds, WAIT_SECONDS))
        request = Request(
            method="GET",
            path=place("runs", run_id, "wait"),
            query={"timeout": f"{seconds:g}"},
            patience=seconds,
        )
        return await self.connection.fetch(request, RunView)

    async def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for the end of a run and return its result; RunFailed when it did not succeed."""
        await self.wait(run_id, timeout)
        outcome = await self.outcome(run_id)
        if outcome.state is not RunState.SUCCEEDED:
            raise RunFailed(outcome)
        return outcome.result

    async def cancel(self, run_id: str) -> RunView:
        """Stop a run: what waits is cancelled, what runs is asked to stop."""
        return await self._post(place("runs", run_id, "cancel"), RunView)

    async def pause(self, run_id: str) -> RunView:
        """Begin no more tasks of a run; those that run go on."""
        return await self._post(place("runs", run_id, "pause"), RunView)

    async def resume(self, run_id: str) -> RunView:
        """Let a paused run go on."""
        return await self._post(place("runs", run_id, "resume"), RunView)

    async def retry(self, run_id: str) -> RetriedView:
        """Try every failed task of a run again, and go on from there."""
        return await self._post(place("runs", run_id, "retry"), RetriedView, repeatable=False)
