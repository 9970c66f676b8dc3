"""Workflows by name, and their releases."""

from __future__ import annotations

import msgspec

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import RunId, VersionId
from tidemill.ports.queries import WorkflowQuery
from tidemill.ports.rows import Release, WorkflowRow
from tidemill.stores.statements import Row, Statements

_decode_labels = msgspec.json.Decoder(dict[str, str]).decode


class Definitions:
    """Implements ports.store.DefinitionTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, workflow: WorkflowRow) -> bool:
        """Insert a workflow; False, and nothing done, when its name is taken."""
        return await self._statements.execute("add_workflow", *_to_row(workflow)) > 0

    async def lock(self, namespace: str, name: str) -> WorkflowRow | None:
        """Lock and return one workflow, removed or not."""
        rows = await self._statements.fetch("lock_workflow", namespace, name)
        return _from_row(rows[0]) if rows else None

    async def lock_id(self, namespace: str, workflow_id: str) -> WorkflowRow | None:
        """Lock and return one workflow by its id, removed or not."""
        rows = await self._statements.fetch("lock_workflow_id", namespace, workflow_id)
        return _from_row(rows[0]) if rows else None

    async def save(self, workflow: WorkflowRow) -> None:
        """Write back a changed workflow that this transaction has locked."""
        await self._statements.execute("save_workflow", *_to_row(workflow))

    async def add_release(self, release: Release) -> None:
        """Insert a release of a workflow that this transaction has locked."""
        await self._statements.execute(
            "add_release",
            release.namespace,
            release.name,
            release.number,
            release.version_id,
            release.created_at,
            release.created_by,
        )


class DefinitionsRead:
    """The part of the reader that knows workflows."""

    _statements: Statements

    async def workflow(self, namespace: str, name: str) -> WorkflowRow:
        """One workflow by its name, or NotFound; a draft without a release is found too."""
        rows = await self._statements.fetch("read_workflow", namespace, name)
        if not rows:
            raise NotFound(f"there is no workflow {name!r}")
        return _from_row(rows[0])

    async def workflow_by_id(self, namespace: str, workflow_id: str) -> WorkflowRow:
        """One workflow by its id, or NotFound."""
        rows = await self._statements.fetch("read_workflow_by_id", namespace, workflow_id)
        if not rows:
            raise NotFound(f"there is no workflow with the id {workflow_id!r}")
        return _from_row(rows[0])

    async def workflows(self, query: WorkflowQuery) -> list[WorkflowRow]:
        """A page of workflows."""
        name, value = query.label or (None, None)
        rows = await self._statements.fetch(
            "list_workflows",
            query.namespace,
            query.after,
            query.text.lower(),
            name,
            value,
            query.drafts,
            query.limit,
        )
        return [_from_row(row) for row in rows]

    async def release(self, namespace: str, name: str, number: int) -> Release:
        """One release, or NotFound."""
        rows = await self._statements.fetch("read_release", namespace, name, number)
        if not rows:
            raise NotFound(f"workflow {name!r} has no version {number}")
        return _release(rows[0])

    async def releases(self, namespace: str, name: str, before: int, limit: int) -> list[Release]:
        """Releases of a workflow with a number below `before`, newest first."""
        rows = await self._statements.fetch("list_releases", namespace, name, before, limit)
        return [_release(row) for row in rows]


def _from_row(row: Row) -> WorkflowRow:
    return WorkflowRow(
        namespace=row[0],
        name=row[1],
        id=row[2],
        title=row[3],
        labels=_decode_labels(row[4]),
        number=row[5],
        version_id=row[6],
        draft=row[7],
        run_id=None if row[8] is None else RunId(row[8]),
        created_at=row[9],
        changed_at=row[10],
        deleted_at=row[11],
    )


def _to_row(workflow: WorkflowRow) -> Row:
    return (
        workflow.namespace,
        workflow.name,
        workflow.id,
        workflow.title,
        msgspec.json.encode(workflow.labels).decode(),
        workflow.number,
        workflow.version_id,
        workflow.draft,
        workflow.run_id,
        workflow.created_at,
        workflow.changed_at,
        workflow.deleted_at,
    )


def _release(row: Row) -> Release:
    return Release(
        namespace=row[0],
        name=row[1],
        number=row[2],
        version_id=VersionId(row[3]),
        created_at=row[4],
        created_by=row[5],
    )
