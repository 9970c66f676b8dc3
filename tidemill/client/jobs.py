"""Jobs: runs of one task, asked for by type and payload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from tidemill.client.calls import Calls, place
from tidemill.protocol.resources import JobView, StartedView, StartJob


class JobOptions(TypedDict, total=False):
    """What a job may say besides its type and payload."""

    max_retries: int
    queue: str
    priority: int
    key: str  # the same key names the same job; made by the client when not given
    labels: Mapping[str, str]


class JobFilters(TypedDict, total=False):
    """Which jobs to list."""

    state: Sequence[str]
    type: str


class JobCalls(Calls):
    """Jobs, one at a time; for many see `bulk`."""

    async def submit_job(
        self,
        type: str,  # noqa: A002 - the word that the API has
        payload: Any = None,
        **options: Unpack[JobOptions],
    ) -> StartedView:
        """Start a job of a known type, and return once it is stored."""
        given = {"key": self.connection.system.fresh_key(), **options}
        return await self._post(
            place("jobs"), StartedView, {"type": type, "payload": payload, **given}
        )

    def jobs(
        self, limit: int | None = None, **filters: Unpack[JobFilters]
    ) -> AsyncIterator[JobView]:
        """Jobs, newest first, asked for page by page."""
        return self._pages(place("jobs"), JobView, filters, limit)

    async def job(self, job_id: str) -> JobView:
        """One job with its payload and its result."""
        return await self._get(place("jobs", job_id), JobView)


__all__ = ["JobCalls", "JobFilters", "JobOptions", "StartJob"]
