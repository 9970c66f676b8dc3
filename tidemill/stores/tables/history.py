"""Earlier attempts, results and kept output."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.domain.identifiers import Token
from tidemill.domain.task_run import Attempt
from tidemill.ports.store import LogChunk, TaskResult
from tidemill.stores.rows import attempt_to_row
from tidemill.stores.statements import Statements


class _Tail:
    """The chunks of one attempt that follow each other without a gap."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._dropped = 0

    def add(self, chunk: LogChunk) -> None:
        """Append; what lies before a gap is worth no more than the gap."""
        if chunk.dropped:
            self._dropped += chunk.dropped + sum(map(len, self._parts))
            self._parts.clear()
        self._parts.append(chunk.text.encode(errors="replace"))

    def kept(self, bytes_max: int) -> tuple[bytes, int]:
        """The last bytes, and how many came before them."""
        text = b"".join(self._parts)
        return text[-bytes_max:], self._dropped + max(0, len(text) - bytes_max)


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
        """Append output of attempts: the last `bytes_max` bytes of each, the rest is counted."""
        tails: dict[Token, _Tail] = {}
        for chunk in chunks:
            tails.setdefault(chunk.token, _Tail()).add(chunk)
        rows = [(*token, *tails[token].kept(bytes_max), bytes_max) for token in sorted(tails)]
        await self._statements.execute_batch("add_log", rows)
