"""/v1/workflows: definitions that are deployed, and their versions."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from tidemill.api.cursors import NameCursor, NumberCursor, decode_cursor, paged
from tidemill.api.looking import find_workflow
from tidemill.api.problems import HttpError
from tidemill.api.routing import Answer, Call, endpoint
from tidemill.api.starting import checked_definition
from tidemill.api.views import version_view, workflow_view
from tidemill.domain.errors import InvalidInput, NotFound, Problem
from tidemill.domain.identifiers import VersionId
from tidemill.domain.permissions import Permission
from tidemill.domain.plan import encode_workflow, version_of
from tidemill.domain.problems import show
from tidemill.domain.workflow import Name, Workflow
from tidemill.engine.definitions import Check, definition_of, definitions_of, deploy, remove
from tidemill.ports.queries import WorkflowQuery
from tidemill.ports.rows import WorkflowRow
from tidemill.protocol.resources import (
    DeployedView,
    Page,
    ValidatedView,
    VersionsQuery,
    VersionView,
    WorkflowsQuery,
    WorkflowView,
)

NUMBER_MAX = 2**31 - 1
Number: TypeAlias = Annotated[int, Meta(ge=1, lt=NUMBER_MAX)]

_EXAMPLE = {"name": "hello", "tasks": [{"id": "wait", "executor": "sleep"}]}
_IF_MATCH = {
    "If-Match": Annotated[
        str, Meta(description="The ETag of the workflow as it was seen: 412 when it has changed.")
    ]
}


@endpoint(
    "GET",
    "/v1/workflows",
    permission=Permission.WORKFLOWS_READ,
    summary="List workflows",
    tag="workflows",
)
async def list_workflows(call: Call, query: WorkflowsQuery) -> Page[WorkflowView]:
    """Workflows that are deployed, by name, without their definitions."""
    cursor = decode_cursor(query.after, NameCursor)
    wanted = WorkflowQuery(
        namespace=call.namespace,
        text=query.text,
        after=cursor.name if cursor else "",
        limit=query.limit + 1,
    )
    services = call.services
    rows = await services.store.reader.workflows(wanted)
    released = [row.version_id for row in rows[: query.limit] if row.version_id is not None]
    definitions = await definitions_of(services.store, services.plans, released)

    def view(row: WorkflowRow) -> WorkflowView:
        definition = None if row.version_id is None else definitions.get(row.version_id)
        return msgspec.structs.replace(workflow_view(row, definition), definition=None)

    return paged(rows, query.limit, view, lambda row: NameCursor(row.name))


@endpoint(
    "POST",
    "/v1/workflows",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Deploy a workflow",
    tag="workflows",
    audit="workflow.deploy",
    status=201,
    statuses={200: "The latest version has this very content: nothing was changed."},
    errors=("CONFLICT", "UNAVAILABLE"),
    example=_EXAMPLE,
)
async def deploy_workflow(call: Call, body: Workflow) -> Answer[DeployedView]:
    """The definition becomes the latest version of its name; runs stay on theirs."""
    return await _deploy(call, body)


@endpoint(
    "POST",
    "/v1/workflows:validate",
    permission=Permission.WORKFLOWS_READ,
    summary="Check a definition",
    tag="workflows",
    example=_EXAMPLE,
)
async def validate_workflow(call: Call, body: Workflow) -> ValidatedView:
    """The same checks as for a deploy, and nothing is stored; every problem at once."""
    workflow = checked_definition(body, root="")
    return ValidatedView(
        name=workflow.name,
        version_id=version_of(call.namespace, encode_workflow(workflow)),
        tasks=len(workflow.tasks),
    )


@endpoint(
    "GET",
    "/v1/workflows/{name}",
    permission=Permission.WORKFLOWS_READ,
    summary="Show a workflow",
    tag="workflows",
    errors=("NOT_FOUND",),
)
async def get_workflow(call: Call, name: Name) -> Answer[WorkflowView]:
    """A workflow with its latest definition."""
    row = await _row(call, name)
    assert row.version_id is not None, "checked when it was found"
    definition = await _definition(call, row.version_id)
    return Answer(workflow_view(row, definition), headers={"ETag": _etag(row)})


@endpoint(
    "PUT",
    "/v1/workflows/{name}",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Deploy a workflow under its name",
    tag="workflows",
    audit="workflow.deploy",
    statuses={201: "A new version."},
    headers=_IF_MATCH,
    errors=("CONFLICT", "PRECONDITION_FAILED", "UNAVAILABLE"),
    example=_EXAMPLE,
)
async def put_workflow(call: Call, name: Name, body: Workflow) -> Answer[DeployedView]:
    """Like a deploy; with If-Match only while the workflow is as it was seen."""
    if body.name != name:
        text = f"is {show(body.name)}, and the path says {show(name)}: they must be the same"
        raise InvalidInput([Problem(path="name", message=text, code="BAD_NAME")])
    return await _deploy(call, body, _matching(call))


@endpoint(
    "DELETE",
    "/v1/workflows/{name}",
    permission=Permission.WORKFLOWS_WRITE,
    summary="Take a workflow away",
    tag="workflows",
    audit="workflow.delete",
    headers=_IF_MATCH,
    errors=("NOT_FOUND", "PRECONDITION_FAILED", "UNAVAILABLE"),
)
async def delete_workflow(call: Call, name: Name) -> None:
    """Nobody can start it any more. Its runs stay and go on, its versions keep their numbers."""
    row = await find_workflow(call.services, call.namespace, name)
    await remove(call.services.store, call.namespace, row.name, _matching(call))


@endpoint(
    "GET",
    "/v1/workflows/{name}/versions",
    permission=Permission.WORKFLOWS_READ,
    summary="List the versions of a workflow",
    tag="workflows",
    errors=("NOT_FOUND",),
)
async def list_versions(call: Call, name: Name, query: VersionsQuery) -> Page[VersionView]:
    """Newest first, without their definitions."""
    cursor = decode_cursor(query.after, NumberCursor)
    row = await _row(call, name)
    before = cursor.number if cursor else NUMBER_MAX
    reader = call.services.store.reader
    releases = await reader.releases(call.namespace, row.name, before, query.limit + 1)
    return paged(releases, query.limit, version_view, lambda one: NumberCursor(one.number))


@endpoint(
    "GET",
    "/v1/workflows/{name}/versions/{number}",
    permission=Permission.WORKFLOWS_READ,
    summary="Show a version of a workflow",
    tag="workflows",
    errors=("NOT_FOUND",),
)
async def get_version(call: Call, name: Name, number: Number) -> Answer[VersionView]:
    """One version with its definition, which never changes."""
    row = await _row(call, name)
    release = await call.services.store.reader.release(call.namespace, row.name, number)
    definition = await _definition(call, release.version_id)
    etag = f'"{release.version_id[:32]}"'
    return Answer(version_view(release, definition), headers={"ETag": etag})


async def _deploy(call: Call, body: Workflow, check: Check | None = None) -> Answer[DeployedView]:
    workflow = checked_definition(body, root="")
    services = call.services
    done = await deploy(
        services.store, services.entropy, call.namespace, workflow, call.principal.id, check
    )
    view = DeployedView(
        id=done.id,
        name=workflow.name,
        version=done.number,
        version_id=done.version_id,
        created=done.created,
    )
    headers = {"Location": f"/v1/workflows/{workflow.name}"}
    return Answer(view, status=201 if done.created else 200, headers=headers)


async def _row(call: Call, name: str) -> WorkflowRow:
    row = await find_workflow(call.services, call.namespace, name)
    if row.version_id is None:
        raise NotFound(f"workflow {name} is a draft: nothing is deployed under this name yet")
    return row


async def _definition(call: Call, version_id: VersionId) -> Workflow | None:
    try:
        return await definition_of(call.services.store, call.services.plans, version_id)
    except NotFound:
        return None  # of a later release, or damaged: the rest can still be seen


def _matching(call: Call) -> Check | None:
    """Asked in the transaction of the change, so that nothing comes in between."""
    if call.header("if-match") is None:
        return None

    def check(row: WorkflowRow | None) -> None:
        if row is None:
            text = "there is no such workflow: leave If-Match out to deploy it"
            raise HttpError(412, text, code="PRECONDITION_FAILED")
        call.require_match(_etag(row))

    return check


def _etag(row: WorkflowRow) -> str:
    return f'"{row.number}-{row.changed_at}"'


ENDPOINTS = (
    list_workflows,
    deploy_workflow,
    validate_workflow,
    get_workflow,
    put_workflow,
    delete_workflow,
    list_versions,
    get_version,
)
