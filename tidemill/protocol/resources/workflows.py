"""Workflows and their versions on the wire. A definition is sent as `domain.workflow.Workflow`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidemill.domain.workflow import Labels, Workflow
from tidemill.protocol.resources.values import PAGE_DEFAULT, Cursor, Limit, Time


class WorkflowsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which workflows to list, by name."""

    text: Annotated[str, Meta(max_length=128, description="A part of the name or title.")] = ""
    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class VersionsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of versions, newest first."""

    limit: Limit = PAGE_DEFAULT
    after: Cursor | None = None


class WorkflowView(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that is deployed; `version` is the number of its latest definition."""

    id: str
    name: str
    title: str
    version: int
    changed_at: Time
    version_id: str = ""
    description: str = ""
    labels: Labels = {}
    tasks: int = 0
    definition: Workflow | None = None  # of a single workflow, not in lists


class VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow: never changed once it is there."""

    name: str
    number: int
    version_id: str
    created_at: Time
    created_by: str | None = None
    definition: Workflow | None = None  # of a single version, not in lists


class DeployedView(msgspec.Struct, frozen=True, kw_only=True):
    """What a deploy has led to; not created when the latest version has the same content."""

    id: str
    name: str
    version: int
    version_id: str
    created: bool


class ValidatedView(msgspec.Struct, frozen=True, kw_only=True):
    """A definition that could be deployed as it is."""

    name: str
    version_id: str
    tasks: int


__all__ = [
    "DeployedView",
    "ValidatedView",
    "VersionView",
    "VersionsQuery",
    "WorkflowView",
    "WorkflowsQuery",
]
