"""The backlog: which lanes are believed to have somebody waiting.

It is a belief, kept in memory: refreshed from the store every couple of seconds, told of lanes by
turns and hints in between. Being wrong costs a claim that finds nothing, or one refresh.

The floor of a lane is where the next claim begins. Claimed rows leave dead entries at the low end
of the index, which pile up while a foreign transaction holds its snapshot; beginning behind them
keeps a claim as cheap as on a fresh table. A refresh begins at zero again and so finds the rows
that were skipped.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidemill.domain.identifiers import Lane
from tidemill.ports.store import ReadyLane


class LaneLook(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim has learned about a lane."""

    lane: ReadyLane
    floor: int
    empty: bool


class Backlog:
    """Lanes with READY tasks, as far as this scheduler knows."""

    def __init__(self) -> None:
        self._floors: dict[ReadyLane, int] = {}

    def __bool__(self) -> bool:
        return bool(self._floors)

    def refresh(self, lanes: Iterable[ReadyLane]) -> None:
        """Take over what the store says, with every floor at zero."""
        self._floors = dict.fromkeys(lanes, 0)

    def note(self, lanes: Iterable[ReadyLane]) -> None:
        """Somebody waits in these lanes."""
        for lane in lanes:
            self._floors.setdefault(lane, 0)

    def learn(self, looks: Iterable[LaneLook]) -> None:
        """Take over what claims have found, once their transaction is committed."""
        for look in looks:
            if look.empty:
                self._floors.pop(look.lane, None)
            else:
                self._floors[look.lane] = look.floor

    def lanes(self, *, alone: bool) -> list[tuple[ReadyLane, int]]:
        """Lanes and their floors, highest priority first."""
        found = [(lane, floor) for lane, floor in self._floors.items() if lane.alone is alone]
        return sorted(found, key=lambda pair: (-pair[0].lane.priority, pair[0].lane))

    def waits_before(self, lane: Lane) -> bool:
        """Whether something of equal or higher standing waits for the same workers."""
        return any(
            other.lane.route == lane.route
            and other.lane.namespace == lane.namespace
            and other.lane.priority >= lane.priority
            for other in self._floors
            if not other.alone
        )
