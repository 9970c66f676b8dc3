"""Dead letters: FAILED tasks that nobody has discarded."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from tidemill.domain.fingerprints import fingerprint
from tidemill.domain.identifiers import Moment, TaskKey
from tidemill.domain.task_run import TaskError, TaskRun
from tidemill.ports.queries import TEXT_ROWS_MAX, DeadGroup, DeadQuery
from tidemill.stores.rows import task_from_row
from tidemill.stores.statements import Row, Statements

MESSAGE_CHARACTERS = 500

# An error as it is stored, which may be cut off: type and message come first.
_ERROR = re.compile(r'\{"type":("(?:[^"\\]|\\.)*"),"message":"((?:[^"\\]|\\.)*)')


class _Failure(NamedTuple):
    key: TaskKey
    ended_at: Moment
    workflow: str
    error: TaskError

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.error)


class DeadLetters:
    """The part of the reader that knows dead letters."""

    _statements: Statements

    async def dead_letters(self, query: DeadQuery) -> list[TaskRun]:
        """A page of FAILED tasks that were not discarded."""
        if query.workflow is None and query.fingerprint is None:
            rows = await self._statements.fetch("list_dead", *_place(query), query.limit)
            return [task_from_row(row) for row in rows]
        failures = await self._failures(query)
        keys = [one.key for one in failures if _is_wanted(one, query)][: query.limit]
        return [
            task_from_row(row) for row in await self._statements.fetch_batch("read_tasks", keys)
        ]

    async def dead_groups(self, namespace: str) -> list[DeadGroup]:
        """Dead letters that failed alike, the largest group first."""
        groups: dict[tuple[str, str], list[_Failure]] = {}
        for failure in await self._failures(DeadQuery(namespace=namespace)):
            groups.setdefault((failure.workflow, failure.fingerprint), []).append(failure)
        told = [_group(name, failures) for (_, name), failures in groups.items()]
        return sorted(told, key=lambda group: (-group.count, -group.latest_at, group.fingerprint))

    async def _failures(self, query: DeadQuery) -> list[_Failure]:
        rows = await self._statements.fetch("list_dead_errors", *_place(query), TEXT_ROWS_MAX)
        return [_failure(row) for row in rows]


def _place(query: DeadQuery) -> tuple[object, ...]:
    run_id, position = query.after or (None, None)
    return query.namespace, query.run_id, run_id, position


def _is_wanted(failure: _Failure, query: DeadQuery) -> bool:
    return (query.workflow is None or failure.workflow == query.workflow) and (
        query.fingerprint is None or failure.fingerprint == query.fingerprint
    )


def _failure(row: Row) -> _Failure:
    return _Failure(TaskKey(row[0], row[1]), row[2], row[4] or "", _error(row[3] or ""))


def _error(text: str) -> TaskError:
    found = _ERROR.match(text)
    if found is None:
        return TaskError(type="", message="")
    kind, message = found.groups()
    return TaskError(type=_decode(kind), message=_decode(f'"{message}"'))


def _decode(text: str) -> str:
    return msgspec.json.decode(text, type=str)


def _group(name: str, failures: list[_Failure]) -> DeadGroup:
    newest = max(failures, key=lambda one: one.ended_at)
    return DeadGroup(
        fingerprint=name,
        workflow=newest.workflow,
        type=newest.error.type,
        message=newest.error.message[:MESSAGE_CHARACTERS],
        count=len(failures),
        newest=newest.key,
        latest_at=newest.ended_at,
        earliest_at=min(one.ended_at for one in failures),
    )
