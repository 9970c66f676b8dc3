"""Plans kept in memory, so that a definition is read and compiled once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from tidemill.domain.identifiers import VersionId
from tidemill.domain.plan import Plan, decode_plan
from tidemill.domain.run import Run
from tidemill.ports.store import Payloads

BROKEN_MAX = 1_000
LATELY = 50
"""So many times of asking ago: more than one transaction needs, with all its tries."""


class PlansMissing(Exception):
    """A transaction met definitions that are not in memory: load them, then begin it anew.

    Reading them inside would lengthen the transaction, and on one connection could not be done.
    """

    def __init__(self, version_ids: Iterable[VersionId]) -> None:
        super().__init__("plans are missing")
        self.version_ids = tuple(version_ids)


class Plans:
    """The plans used last, bounded by the number of their nodes.

    What was asked for lately is never forgotten, even beyond the bound: a transaction asks for its
    plans in several steps, and must find them all together.
    """

    def __init__(self, nodes_max: int = 500_000) -> None:
        self._nodes_max = nodes_max
        self._nodes = 0
        self._asked = 0
        self._plans: OrderedDict[VersionId, Plan] = OrderedDict()
        self._asked_at: dict[VersionId, int] = {}
        self._broken: dict[VersionId, str] = {}

    def of(self, runs: Iterable[Run]) -> tuple[dict[VersionId, Plan], dict[VersionId, str]]:
        """The plans of these runs, and what is wrong with those that cannot be read."""
        return self.by_id(run.version_id for run in runs)

    def by_id(
        self, version_ids: Iterable[VersionId]
    ) -> tuple[dict[VersionId, Plan], dict[VersionId, str]]:
        """The same for definitions by their ids."""
        self._asked += 1
        wanted = dict.fromkeys(version_ids)
        missing = [name for name in wanted if name not in self._plans and name not in self._broken]
        for name in wanted:
            if name in self._plans:
                self._asked_at[name] = self._asked
                self._plans.move_to_end(name)
        if missing:
            raise PlansMissing(missing)
        plans = {name: self._plans[name] for name in wanted if name in self._plans}
        return plans, {name: self._broken[name] for name in wanted if name in self._broken}

    async def load(self, payloads: Payloads, version_ids: Iterable[VersionId]) -> None:
        """Read and compile definitions. One that cannot be read is remembered as broken."""
        wanted = list(version_ids)
        if len(self._broken) > BROKEN_MAX:
            self._broken.clear()
        found = {version.id: version for version in await payloads.versions(wanted)}
        for version_id in wanted:
            if version_id not in found:
                self._broken[version_id] = "its definition is missing"
                continue
            try:
                self._keep(decode_plan(version_id, found[version_id].spec))
            except (msgspec.DecodeError, ValueError, KeyError) as error:
                self._broken[version_id] = f"its definition cannot be read: {error}"
        self._forget_old()

    def _keep(self, plan: Plan) -> None:
        if plan.version_id not in self._plans:
            self._plans[plan.version_id] = plan
            self._asked_at[plan.version_id] = self._asked
            self._nodes += len(plan.nodes)

    def _forget_old(self) -> None:
        while self._nodes > self._nodes_max:
            oldest = next(iter(self._plans))
            if self._asked - self._asked_at[oldest] < LATELY:
                break
            self._nodes -= len(self._plans.pop(oldest).nodes)
            del self._asked_at[oldest]
