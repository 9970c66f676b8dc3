"""Earlier attempts, results and kept output."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.identifiers import Token
from tidemill.domain.task_run import Attempt
from tidemill.ports.store import LogChunk, TaskResult
from tidemill.stores.rows import attempt_to_row
from tidemill.stores.statements import Statements


class History:
    """Implements ports.store.HistoryTable."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Record attempts that were followed by another one."""
        rows = [attempt_to_row(attempt) for attempt in attempts]
        await self._statements.execute_batch("add_attempt", rows)

    async def add_results(self, results: Sequence[TaskResult]) -> None:
        """Record results of tasks that succeeded in this transaction."""
        rows = [(*result.key, result.data) for result in results]
        await self._statements.execute_batch("add_result", rows)

    async def add_logs(self, chunks: Sequence[LogChunk], bytes_max: int) -> None:
        """Append output of attempts, keeping the last `bytes_max` bytes of each attempt."""
        joined: dict[Token, list[bytes]] = {}
        for chunk in chunks:
            joined.setdefault(chunk.token, []).append(chunk.text.encode(errors="replace"))
        rows = [
            (*token, b"".join(joined[token])[-bytes_max:], bytes_max) for token in sorted(joined)
        ]
        await self._statements.execute_batch("add_log", rows)
