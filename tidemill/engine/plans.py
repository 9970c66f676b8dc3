"""Plans kept in memory, so that a definition is read and compiled once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from tidemill.domain.identifiers import VersionId
from tidemill.domain.plan import Plan, decode_plan
from tidemill.domain.run import Run
from tidemill.ports.store import Payloads


class PlansMissing(Exception):
    """A transaction met definitions that are not in memory: load them, then begin it anew.

    Reading them inside would lengthen the transaction, and on one connection could not be done.
    """

    def __init__(self, version_ids: Iterable[VersionId]) -> None:
        super().__init__("plans are missing")
        self.version_ids = tuple(version_ids)


class Plans:
    """The plans used last, bounded by the number of their nodes."""

    def __init__(self, nodes_max: int = 500_000) -> None:
        self._nodes_max = nodes_max
        self._nodes = 0
        self._plans: OrderedDict[VersionId, Plan] = OrderedDict()
        self._broken: dict[VersionId, str] = {}

    def of(self, runs: Iterable[Run]) -> tuple[dict[VersionId, Plan], dict[VersionId, str]]:
        """The plans of these runs, and what is wrong with those that cannot be read."""
        wanted = dict.fromkeys(run.version_id for run in runs)
        missing = [name for name in wanted if name not in self._plans and name not in self._broken]
        if missing:
            raise PlansMissing(missing)
        for name in wanted:
            if name in self._plans:
                self._plans.move_to_end(name)
        plans = {name: self._plans[name] for name in wanted if name in self._plans}
        return plans, {name: self._broken[name] for name in wanted if name in self._broken}

    def keep(self, plan: Plan) -> None:
        """Remember a plan, forgetting those unused for longest."""
        if plan.version_id in self._plans:
            return
        self._plans[plan.version_id] = plan
        self._nodes += len(plan.nodes)
        while self._nodes > self._nodes_max and len(self._plans) > 1:
            _, forgotten = self._plans.popitem(last=False)
            self._nodes -= len(forgotten.nodes)

    async def load(self, payloads: Payloads, version_ids: Iterable[VersionId]) -> None:
        """Read and compile definitions. One that cannot be read is remembered as broken."""
        wanted = list(version_ids)
        self._broken = {}
        found = {version.id: version for version in await payloads.versions(wanted)}
        for version_id in wanted:
            if version_id not in found:
                self._broken[version_id] = "its definition is missing"
                continue
            try:
                self.keep(decode_plan(version_id, found[version_id].spec))
            except (msgspec.DecodeError, ValueError, KeyError) as error:
                self._broken[version_id] = f"its definition cannot be read: {error}"
