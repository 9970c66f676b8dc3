"""The run table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tidemill.domain.identifiers import RunId
from tidemill.domain.run import Run
from tidemill.ports.store import FORMAT_MAX, NewRun
from tidemill.stores.rows import new_run_to_row, run_from_row, run_to_changes
from tidemill.stores.statements import Statements


class Runs:
    """Implements ports.store.RunTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add(self, runs: Sequence[NewRun]) -> None:
        """Insert new runs."""
        await self._statements.execute_batch("add_run", [new_run_to_row(run) for run in runs])
        await self.label((new.run.id, new.run) for new in runs)

    async def label(self, runs: Iterable[tuple[RunId, Run]]) -> None:
        """Let runs be found by the labels of these values."""
        labels = [
            (run.namespace, name, value, run_id)
            for run_id, run in runs
            for name, value in run.labels.items()
        ]
        await self._statements.execute_batch("add_run_label", sorted(labels))

    async def lock(self, run_ids: Collection[RunId], *, wait: bool) -> list[Run]:
        """Lock and return runs in order of id, without those in quarantine."""
        name = "lock_runs_waiting" if wait else "lock_runs_skipping"
        rows = await self._statements.fetch_batch(name, _in_order(run_ids), FORMAT_MAX)
        return [run_from_row(row) for row in rows]

    async def peek(self, run_ids: Sequence[RunId]) -> list[Run]:
        """Return runs without locking them, in order of id, without those in quarantine."""
        rows = await self._statements.fetch_batch("peek_runs", _in_order(run_ids), FORMAT_MAX)
        return [run_from_row(row) for row in rows]

    async def save(self, runs: Sequence[Run]) -> None:
        """Write back changed runs that this transaction has locked."""
        await self._statements.execute_batch("save_run", [run_to_changes(run) for run in runs])

    async def quarantine(self, run_id: RunId, reason: str) -> None:
        """Put one run out of every scheduler's reach, its READY tasks on hold, unread."""
        # No database text holds NUL, and a reason may quote what made the run unreadable.
        await self._statements.execute("quarantine_run", run_id, reason.replace("\0", "") or "?")
        await self._statements.execute("hold_tasks", run_id)

    async def release(self, run_id: RunId) -> bool:
        """End the quarantine of a run; False when it was not in quarantine."""
        released = await self._statements.execute("release_run", run_id)
        await self._statements.execute("unhold_tasks", run_id)
        return released > 0


def _in_order(run_ids: Collection[RunId]) -> list[tuple[RunId]]:
    return [(run_id,) for run_id in sorted(set(run_ids))]
