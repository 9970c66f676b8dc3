"""Runs of the store itself, for commands that carry them out."""

from __future__ import annotations

from tidemill.domain.errors import InvalidInput, MalformedRun, NotFound, Problem
from tidemill.domain.plan import Plan, decode_plan
from tidemill.domain.run import Run
from tidemill.domain.task_run import TaskRun
from tidemill.ports.queries import RunQuery
from tidemill.ports.store import Store

PAGE_TASKS = 2_000
LATEST = "latest"
_CANDIDATES_MAX = 6


async def find_run(store: Store, text: str) -> Run:
    """The run whose id is, begins with or ends with the text, or the latest one."""
    if text == LATEST:
        newest = await store.reader.runs(RunQuery(namespace="default", limit=1))
        if not newest:
            raise NotFound("the store holds no runs yet")
        return newest[0]
    found = await store.reader.find_runs("default", text.lower(), _CANDIDATES_MAX) if text else []
    if not found:
        raise NotFound(f"no run's id begins or ends with {text!r}; `tidemill runs` lists them")
    if len(found) > 1:
        some = ", ".join(found[: _CANDIDATES_MAX - 1])
        message = f"{text!r} fits more than one run ({some}…): give more characters"
        raise InvalidInput([Problem(path="run", message=message, code="ambiguous")])
    return await store.reader.run("default", found[0])


async def read_plan(store: Store, run: Run) -> Plan:
    """The definition that a run follows."""
    versions = await store.payloads.versions([run.version_id])
    if not versions:
        raise MalformedRun(run.id, "its definition is missing")
    return decode_plan(run.version_id, versions[0].spec)


async def read_tasks(store: Store, run: Run) -> list[TaskRun]:
    """All tasks of a run that are written so far."""
    tasks: list[TaskRun] = []
    while page := await store.reader.tasks(
        run.namespace, run.id, tasks[-1].position if tasks else -1, PAGE_TASKS
    ):
        tasks += page
    return tasks
