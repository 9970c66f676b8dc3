"""What an assignment is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.domain.identifiers import RunId, TaskKey, VersionId
from tidemill.ports.secrets import SecretKey
from tidemill.ports.store import Version
from tidemill.stores.rows import version_from_row
from tidemill.stores.statements import Statements


class StorePayloads:
    """Implements ports.store.Payloads."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def versions(self, version_ids: Sequence[VersionId]) -> list[Version]:
        """Definitions. What two namespaces both have is the same by its hash, and told once."""
        keys = [(version_id,) for version_id in dict.fromkeys(version_ids)]
        rows = await self._statements.fetch_batch("read_versions", keys)
        return list({row[0]: version_from_row(row) for row in rows}.values())

    async def inputs(self, run_ids: Sequence[RunId]) -> Mapping[RunId, bytes]:
        """Inputs of runs, as JSON."""
        keys = [(run_id,) for run_id in dict.fromkeys(run_ids)]
        rows = await self._statements.fetch_batch("read_inputs", keys)
        return {RunId(row[0]): row[1] for row in rows}

    async def results(self, keys: Sequence[TaskKey]) -> Mapping[TaskKey, bytes]:
        """Results of tasks, as JSON; a task without a stored result is left out."""
        rows = await self._statements.fetch_batch("read_results", list(dict.fromkeys(keys)))
        return {TaskKey(RunId(row[0]), row[1]): row[2] for row in rows}

    async def secrets(self, keys: Sequence[SecretKey]) -> Mapping[SecretKey, bytes]:
        """Secrets as they are sealed; one that is not there is left out."""
        rows = await self._statements.fetch_batch("read_secrets", list(dict.fromkeys(keys)))
        return {SecretKey(row[0], row[1]): row[2] for row in rows}
