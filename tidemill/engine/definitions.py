"""Definitions under names: deploying, removing, and finding what to start."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import msgspec

from tidemill.domain.errors import NotFound
from tidemill.domain.identifiers import Moment, VersionId
from tidemill.domain.plan import Plan, encode_workflow, version_of
from tidemill.domain.workflow import Workflow
from tidemill.engine.plans import Plans, PlansMissing
from tidemill.engine.retrying import retrying
from tidemill.ports.entropy import Entropy
from tidemill.ports.rows import Release, Version, WorkflowRow
from tidemill.ports.store import Store, Transaction

Check: TypeAlias = Callable[[WorkflowRow | None], None]
"""Looks at a workflow as it is, None when there is none, and raises when it must not change."""

_replace = msgspec.structs.replace


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """What a deploy led to; not created when the latest release has this very content."""

    id: str
    name: str
    number: int
    version_id: VersionId
    created: bool


async def deploy(
    store: Store,
    entropy: Entropy,
    namespace: str,
    workflow: Workflow,
    by: str,
    check: Check | None = None,
) -> Deployed:
    """Make a checked definition the latest release of its name; `check` sees the one before.

    The version id is the name of the content: equal definitions have equal ones.
    """
    fresh_id = entropy.run_id()

    async def once() -> Deployed:
        async with store.transaction() as tx:
            now = await tx.now()
            row = await lock_or_add(tx, _fresh(fresh_id, namespace, workflow.name, now))
            if check is not None:
                check(row if row.number and row.deleted_at is None else None)
            return await release(tx, row, workflow, by, now)

    return await retrying(once)


async def remove(store: Store, namespace: str, name: str, check: Check | None = None) -> None:
    """Take a workflow away: nobody starts it any more; its runs and releases stay."""

    async def once() -> None:
        async with store.transaction() as tx:
            row = await tx.definitions.lock(namespace, name)
            if row is None or row.deleted_at is not None:
                raise NotFound(f"there is no workflow {name!r}")
            if check is not None:
                check(row)
            now = await tx.now()
            await tx.definitions.save(_replace(row, deleted_at=now, changed_at=now))

    await retrying(once)


async def workflow_of(
    store: Store, plans: Plans, namespace: str, name: str, number: int | None = None
) -> Workflow:
    """What to start under a name: the latest release, or the one with the number; or NotFound.

    While the plans are kept it is the same object each time, which makes starting it cheap.
    """
    if number is None:
        row = await store.reader.workflow(namespace, name)
        version_id = row.version_id
    else:
        await store.reader.workflow(namespace, name)
        version_id = (await store.reader.release(namespace, name, number)).version_id
    if version_id is None:
        raise NotFound(f"workflow {name!r} is a draft: nothing is deployed under this name yet")
    return await definition_of(store, plans, version_id)


async def definition_of(store: Store, plans: Plans, version_id: VersionId) -> Workflow:
    """A stored definition; NotFound when it is missing or cannot be read."""
    found, broken = await _plans_of(store, plans, [version_id])
    if version_id in broken:
        raise NotFound(f"version {version_id} cannot be started: {broken[version_id]}")
    return found[version_id].workflow


async def definitions_of(
    store: Store, plans: Plans, version_ids: Collection[VersionId]
) -> dict[VersionId, Workflow]:
    """Stored definitions; those that cannot be read are left out."""
    found, _ = await _plans_of(store, plans, version_ids)
    return {version_id: plan.workflow for version_id, plan in found.items()}


async def _plans_of(
    store: Store, plans: Plans, version_ids: Collection[VersionId]
) -> tuple[dict[VersionId, Plan], dict[VersionId, str]]:
    try:
        return plans.by_id(version_ids)
    except PlansMissing as missing:
        await plans.load(store.payloads, missing.version_ids)
        return plans.by_id(version_ids)


async def lock_or_add(tx: Transaction, fresh: WorkflowRow) -> WorkflowRow:
    """The workflow of this name, locked; a fresh one when there was none."""
    await tx.definitions.add(fresh)
    row = await tx.definitions.lock(fresh.namespace, fresh.name)
    assert row is not None, "a workflow is never deleted"
    return row


async def release(
    tx: Transaction, row: WorkflowRow, workflow: Workflow, by: str, now: Moment
) -> Deployed:
    """Make a definition the latest release of a workflow that is locked."""
    spec = encode_workflow(workflow)
    version_id = version_of(row.namespace, spec)
    created = row.version_id != version_id
    number = row.number + 1 if created else row.number
    if created:
        version = Version(
            id=version_id, namespace=row.namespace, name=row.name, spec=spec, created_at=now
        )
        await tx.starts.add_versions([version])
        await tx.definitions.add_release(
            Release(
                namespace=row.namespace,
                name=row.name,
                number=number,
                version_id=version_id,
                created_at=now,
                created_by=by,
            )
        )
    if created or row.deleted_at is not None:
        await tx.definitions.save(_released(row, workflow, number, version_id, now))
    return Deployed(id=row.id, name=row.name, number=number, version_id=version_id, created=created)


def _released(
    row: WorkflowRow, workflow: Workflow, number: int, version_id: VersionId, now: Moment
) -> WorkflowRow:
    return _replace(
        row,
        title=workflow.title,
        labels=workflow.labels,
        number=number,
        version_id=version_id,
        changed_at=now,
        deleted_at=None,
    )


def _fresh(workflow_id: str, namespace: str, name: str, now: Moment) -> WorkflowRow:
    return WorkflowRow(
        id=workflow_id, namespace=namespace, name=name, created_at=now, changed_at=now
    )
