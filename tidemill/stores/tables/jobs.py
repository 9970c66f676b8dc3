"""Jobs: runs of one task."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import RunKind
from tidemill.domain.task_run import GRANTED, TaskState
from tidemill.ports.queries import Job, JobQuery
from tidemill.stores.rows import run_from_row, task_from_row
from tidemill.stores.statements import Statements
from tidemill.stores.tables.listing import HIGHEST_ID

_OPEN = GRANTED | {TaskState.PENDING, TaskState.READY, TaskState.BACKOFF}
_UNSUCCESSFUL = {TaskState.FAILED, TaskState.CANCELLED}


class Jobs:
    """The part of the reader that knows jobs."""

    _statements: Statements

    async def jobs(self, query: JobQuery) -> list[Job]:
        """A page of jobs."""
        states = [state.value for state in query.states]
        values = (query.namespace, query.after or HIGHEST_ID, query.type, states, query.limit)
        found: set[RunId] = set()
        for name, *more in _sources(query):
            found |= {row[0] for row in await self._statements.fetch(name, *values, *more)}
        return await self._read_jobs(sorted(found, reverse=True)[: query.limit])

    async def job(self, namespace: str, run_id: RunId) -> Job:
        """One job, or NotFound; a run that is no job is not found either."""
        found = await self._read_jobs([run_id])
        if not found or found[0].run.namespace != namespace:
            raise NotFound(f"there is no job {run_id}")
        if found[0].run.kind is not RunKind.JOB:
            raise NotFound(f"{run_id} is no job but a run: look at it among the runs")
        return found[0]

    async def _read_jobs(self, run_ids: list[RunId]) -> list[Job]:
        keys = [(run_id,) for run_id in run_ids]
        rows = await self._statements.fetch_batch("read_runs", keys)
        runs = {row[0]: run_from_row(row) for row in rows}
        rows = await self._statements.fetch_batch("read_first_tasks", keys)
        tasks = {row[0]: task_from_row(row) for row in rows}
        return [Job(runs[one], tasks[one]) for one in run_ids if one in runs and one in tasks]


def _sources(query: JobQuery) -> Iterator[tuple[str, ...]]:
    """The narrowest index that holds all states asked for."""
    states = set(query.states)
    if states and states <= GRANTED:
        yield ("list_granted_jobs",)
    elif states == {TaskState.BACKOFF}:
        yield ("list_backoff_jobs",)
    elif states and states <= _OPEN:
        yield ("list_open_jobs",)
    elif states and states <= _UNSUCCESSFUL:
        # A run that is out of time has failed, and its task was cancelled.
        yield from (("list_unsuccessful_jobs", state) for state in ("FAILED", "CANCELLED"))
    else:
        yield ("list_jobs",)
