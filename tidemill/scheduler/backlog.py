"""The backlog: which lanes are believed to have somebody waiting.

It is a belief, kept in memory: refreshed from the store every couple of seconds, told of lanes by
turns and hints in between. Being wrong costs a claim that finds nothing, or one refresh.

The floor of a lane is where the next claim begins. Claimed rows leave dead entries at the low end
of the index, which pile up while a foreign transaction holds its snapshot; beginning behind them
keeps a claim as cheap as on a fresh table. News of a lane begin a little lower, since places are
given before the commit and a transaction may commit behind a later one; what a worker hands back
at once has its place there too. What was held for long before it was lost has a lower one: one
claim of its lane begins at zero then, and so does one after each refresh, which finds whatever was
skipped. Claims beside it begin at the floor.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidemill.domain.identifiers import Lane
from tidemill.domain.routes import read_route
from tidemill.ports.store import ReadyLane

LATE_MAX = 10_000
"""Places given to transactions that were still open when later ones were claimed: rarely more."""


class LaneLook(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim has learned about a lane, as it was believed to be when the claim began."""

    lane: ReadyLane
    version: int
    begin: int
    floor: int
    empty: bool


class Belief(msgspec.Struct, frozen=True):
    """What is believed of one lane."""

    version: int  # raised by every piece of news from outside
    floor: int = 0  # behind the highest place that was claimed
    served: int = 0  # when it was last looked into, as a count of looks
    news: bool = False  # since the last claim began
    whole: bool = False  # the next claim looks at all of it

    @property
    def begin(self) -> int:
        """Where the next claim begins."""
        if self.whole:
            return 0
        return max(0, self.floor - LATE_MAX) if self.news else self.floor


WHOLE = Belief(0, whole=True)
"""Of a lane that nothing is known of."""


class Backlog:
    """Lanes with READY tasks, as far as this scheduler knows."""

    def __init__(self) -> None:
        self._lanes: dict[ReadyLane, Belief] = {}
        self._left: dict[ReadyLane, Belief] = {}  # lanes found empty since the last refresh
        self._version = 0
        self._looks = 0

    def __bool__(self) -> bool:
        return bool(self._lanes)

    @property
    def version(self) -> int:
        """Take it before a look at the store, and hand it to `refresh`."""
        return self._version

    def refresh(self, lanes: Iterable[ReadyLane], since: int) -> None:
        """Take over what the store says; each lane is looked at from its beginning again.

        What was noted since the look began is younger than its answer, and stays. Of lanes that are
        empty, those are forgotten that were so at the last refresh.
        """
        younger = [lane for lane, belief in self._lanes.items() if belief.version > since]
        left = {lane: belief for lane, belief in self._left.items() if not belief.whole}
        known = {
            lane: msgspec.structs.replace(belief, whole=True)
            for lane, belief in (left | self._lanes).items()
        }
        self._version += 1
        self._lanes = {
            lane: msgspec.structs.replace(known.pop(lane, WHOLE), version=self._version)
            for lane in dict.fromkeys((*lanes, *younger))
        }
        self._left = known

    def note(self, lanes: Iterable[ReadyLane], *, whole: bool = False) -> None:
        """Somebody waits in these lanes, perhaps at a place from long ago: then look at all."""
        for lane in lanes:
            self._version += 1
            before = self._lanes.get(lane) or self._left.pop(lane, WHOLE)
            self._lanes[lane] = msgspec.structs.replace(
                before, version=self._version, news=True, whole=whole or before.whole
            )

    def begin(self, lane: ReadyLane) -> None:
        """A claim of the lane begins; one that looks at all of it is enough."""
        belief = self._lanes.get(lane)
        if belief is not None and belief.whole:
            self._lanes[lane] = msgspec.structs.replace(belief, whole=False)

    def pass_by(self, look: LaneLook) -> None:
        """Let other claims begin behind one that is not committed yet: what it has is locked."""
        belief = self._lanes.get(look.lane)
        if belief is not None and belief.version == look.version:
            floor = max(belief.floor, look.floor)
            self._lanes[look.lane] = msgspec.structs.replace(belief, floor=floor)

    def look_again(self, looks: Iterable[LaneLook]) -> None:
        """Claims are undone: begin where they began, whatever others find behind them."""
        for look in looks:
            self._version += 1
            before = self._lanes.get(look.lane) or self._left.pop(look.lane, WHOLE)
            floor = min(before.floor, look.begin)
            self._lanes[look.lane] = msgspec.structs.replace(
                before, version=self._version, floor=floor, news=True
            )

    def learn(self, looks: Iterable[LaneLook]) -> None:
        """Take over what claims have found, once their transaction is committed.

        A lane of which there was news meanwhile is not called empty.
        """
        for look in looks:
            belief = self._lanes.get(look.lane)
            if belief is None:
                continue
            self._looks += 1
            if belief.version != look.version:
                # A floor below where the claim began was set since, by an undoing.
                passed = belief.floor >= look.begin
                floor = max(belief.floor, look.floor) if passed else belief.floor
                self._lanes[look.lane] = msgspec.structs.replace(
                    belief, floor=floor, served=self._looks, news=True
                )
            elif look.empty:
                del self._lanes[look.lane]
                self._left[look.lane] = Belief(0, look.floor, self._looks)
            else:
                floor = max(belief.floor, look.floor)
                self._lanes[look.lane] = Belief(belief.version, floor, self._looks)

    def lanes(self, *, alone: bool) -> list[tuple[ReadyLane, Belief]]:
        """Highest priority first; among equals, the one not looked into for longest."""
        found = [(lane, belief) for lane, belief in self._lanes.items() if lane.alone is alone]
        return sorted(found, key=lambda one: (-one[0].lane.priority, one[1].served, one[0].lane))

    def ready(self) -> list[ReadyLane]:
        """Every lane in which somebody waits, in no order."""
        return list(self._lanes)

    def before(self, lane: Lane) -> list[Lane]:
        """Lanes of the same queue in which something of equal or higher standing waits."""
        queue = read_route(lane.route).queue
        return [
            other.lane
            for other in self._lanes
            if not other.alone
            and other.lane.namespace == lane.namespace
            and other.lane.priority >= lane.priority
            and read_route(other.lane.route).queue == queue
        ]
