"""Workflows that are deployed, and their versions."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tidemill.client.calls import Calls, place
from tidemill.domain.workflow import Workflow
from tidemill.protocol.resources import DeployedView, ValidatedView, VersionView, WorkflowView


class WorkflowCalls(Calls):
    """Definitions on the server."""

    async def deploy(self, workflow: Workflow) -> DeployedView:
        """Make a definition the latest version; the same content makes no new one."""
        return await self._post(place("workflows"), DeployedView, workflow)

    async def validate(self, workflow: Workflow) -> ValidatedView:
        """Have a definition checked as for a deploy, and store nothing."""
        return await self._post(place("workflows") + ":validate", ValidatedView, workflow)

    def workflows(self, limit: int | None = None, *, text: str = "") -> AsyncIterator[WorkflowView]:
        """Deployed workflows by name; `text` is a part of the name or title."""
        return self._pages(place("workflows"), WorkflowView, {"text": text or None}, limit)

    async def workflow(self, name: str) -> WorkflowView:
        """One workflow with its latest definition."""
        return await self._get(place("workflows", name), WorkflowView)

    def versions(self, name: str, limit: int | None = None) -> AsyncIterator[VersionView]:
        """The versions of a workflow, newest first."""
        return self._pages(place("workflows", name, "versions"), VersionView, {}, limit)

    async def version(self, name: str, number: int) -> VersionView:
        """One version with its definition."""
        return await self._get(place("workflows", name, "versions", number), VersionView)

    async def delete_workflow(self, name: str) -> None:
        """Take a workflow away; its runs stay and go on."""
        await self._send("DELETE", place("workflows", name))
