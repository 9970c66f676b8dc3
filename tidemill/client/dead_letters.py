"""Dead letters: tasks that failed for good."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypedDict, Unpack

from tidemill.client.calls import Calls, place
from tidemill.protocol.resources import (
    DeadLetterView,
    GroupView,
    Page,
    ReplayedView,
    ReplayMany,
    RunView,
)


class DeadLetterFilters(TypedDict, total=False):
    """Which dead letters are meant."""

    workflow: str
    group: str  # as `dead_letter_groups` names it
    run: str


class DeadLetterCalls(Calls):
    """Looking at dead letters, trying them again, letting them go."""

    def dead_letters(
        self, limit: int | None = None, **filters: Unpack[DeadLetterFilters]
    ) -> AsyncIterator[DeadLetterView]:
        """Dead letters, newest run first."""
        return self._pages(place("dead-letters"), DeadLetterView, filters, limit)

    async def dead_letter_groups(self, limit: int = 50) -> tuple[GroupView, ...]:
        """Dead letters that failed alike, the largest group first."""
        page = await self._get(place("dead-letters", "groups"), Page[GroupView], {"limit": limit})
        return page.items

    async def replay(self, run_id: str, task: str) -> RunView:
        """Try one again with fresh budgets; its run goes on from there."""
        path = place("dead-letters", run_id, task, "replay")
        return await self._post(path, RunView, repeatable=False)

    async def discard(self, run_id: str, task: str) -> None:
        """Let one go: it is no longer listed, and its run stays as it ended."""
        await self._send("POST", place("dead-letters", run_id, task, "discard"))

    async def replay_many(self, wanted: ReplayMany) -> ReplayedView:
        """Try many again, so many a second at most."""
        return await self._post(place("dead-letters") + ":replay", ReplayedView, wanted)
