"""Runs page by page, each page by the index that fits best.

A page is found in two steps: ids by an index, in order and bounded, then their rows. Ids are drawn
from time, so a range of time is a range of ids; the clock that drew an id may differ a little from
that of the database, so the range is taken wider and the rows are asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tidemill.domain.identifiers import SECOND, Moment, RunId
from tidemill.domain.run import Run, RunKind, RunState
from tidemill.ports.queries import TEXT_ROWS_MAX, RunOrder, RunQuery
from tidemill.stores.rows import run_from_row
from tidemill.stores.statements import Row, Statements

LOWEST_ID = "00000000-0000-0000-0000-000000000000"
HIGHEST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
SKEW = 600 * SECOND
MILLISECOND = SECOND // 1_000
MOMENT_MAX = 2**62

_UNSUCCESSFUL = {RunState.FAILED, RunState.CANCELLED}
_OPEN = {RunState.PENDING, RunState.RUNNING, RunState.PAUSED}


class Listing:
    """Lists runs."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def page(self, query: RunQuery) -> list[Run]:
        """A page of runs, in the order asked for."""
        limit = TEXT_ROWS_MAX if query.text else query.limit
        newest = query.order is RunOrder.NEWEST
        found: list[Row] = []
        for name, *values in _sources(query):
            order = "newest" if newest else "oldest"
            text = _NAMES[name, order]
            found += await self._statements.fetch(text, *_conditions(query, limit), *values)
        found.sort(key=lambda row: str(row[0]), reverse=newest)
        wanted = (row[0] for row in found[:limit] if _has_text(row, query.text.lower()))
        return await self.rows(list(islice(wanted, query.limit)))

    async def rows(self, run_ids: list[RunId]) -> list[Run]:
        """Runs by their ids, in the order of the ids."""
        keys = [(run_id,) for run_id in run_ids]
        rows = await self._statements.fetch_batch("read_runs", keys)
        runs = {row[0]: run_from_row(row) for row in rows}
        return [runs[run_id] for run_id in run_ids if run_id in runs]


_NAMES = {
    ("all", "newest"): "list_runs_newest",
    ("all", "oldest"): "list_runs_oldest",
    ("open", "newest"): "list_open_runs_newest",
    ("open", "oldest"): "list_open_runs_oldest",
    ("unsuccessful", "newest"): "list_unsuccessful_runs_newest",
    ("unsuccessful", "oldest"): "list_unsuccessful_runs_oldest",
    ("kind", "newest"): "list_runs_of_kind_newest",
    ("kind", "oldest"): "list_runs_of_kind_oldest",
    ("workflow", "newest"): "list_runs_of_workflow_newest",
    ("workflow", "oldest"): "list_runs_of_workflow_oldest",
    ("label", "newest"): "list_labelled_runs_newest",
    ("label", "oldest"): "list_labelled_runs_oldest",
}


def _sources(query: RunQuery) -> Iterator[tuple[str, ...]]:
    """The narrowest indexes that hold all that is asked for, with the values they need."""
    if query.label is not None:
        yield "label", *query.label
    elif query.workflow is not None and _without_jobs(query):
        yield "workflow", query.workflow
    elif query.states and _UNSUCCESSFUL.issuperset(query.states):
        yield from (("unsuccessful", state.value) for state in query.states)
    elif query.states and _OPEN.issuperset(query.states):
        yield ("open",)
    elif query.kinds:
        yield from (("kind", kind.value) for kind in query.kinds)
    else:
        yield ("all",)


def _without_jobs(query: RunQuery) -> bool:
    return bool(query.kinds) and RunKind.JOB not in query.kinds


def _conditions(query: RunQuery, limit: int) -> tuple[object, ...]:
    lower, upper = _id_range(query)
    return (
        query.namespace,
        lower,
        upper,
        query.created_after or 0,
        MOMENT_MAX if query.created_before is None else query.created_before,
        [state.value for state in query.states],
        [kind.value for kind in query.kinds],
        query.workflow,
        limit,
    )


def _id_range(query: RunQuery) -> tuple[str, str]:
    """Ids in between, both ends left out."""
    lower, upper = LOWEST_ID, HIGHEST_ID
    if query.created_after is not None:
        lower = _id_at(query.created_after - SKEW)
    if query.created_before is not None:
        upper = _id_at(query.created_before + SKEW)
    if query.after is not None and query.order is RunOrder.NEWEST:
        upper = min(upper, query.after)
    elif query.after is not None:
        lower = max(lower, query.after)
    return lower, upper


def _id_at(moment: Moment) -> str:
    """The lowest UUIDv7 of a moment."""
    digits = f"{min(max(moment, 0) // MILLISECOND, 2**48 - 1):012x}"
    return f"{digits[:8]}-{digits[8:]}-0000-0000-000000000000"


def _has_text(row: Row, text: str) -> bool:
    return any(text in (part or "").lower() for part in row[:3])
