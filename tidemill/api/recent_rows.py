"""The latest rows of the outbox in memory, read once for all who follow them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from tidemill.domain.facts import Fact, FactType, decode_facts
from tidemill.domain.identifiers import RunId
from tidemill.ports.bus import Event
from tidemill.ports.store import OutboxRow
from tidemill.protocol.cloud_events import encode_event

WHOLE_ROW = 2**31 - 1
"""The offset of a place behind every fact of its row."""


class Place(NamedTuple):
    """How far somebody has come: the facts of this row up to this one, and all rows before."""

    position: int
    offset: int = WHOLE_ROW

    def __str__(self) -> str:
        return f"{self.position}" if self.offset == WHOLE_ROW else f"{self.position}.{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read back an id that a stream has given; the caller has checked its form."""
        position, _, index = text.partition(".")
        return cls(int(position), int(index) if index else WHOLE_ROW)


class Told(NamedTuple):
    """One fact on its way to a follower, as the world sees it."""

    place: Place
    data: bytes


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which facts somebody follows: those of one namespace, and fewer when more is said."""

    namespace: str
    run_id: RunId | None = None
    workflow: str | None = None
    types: frozenset[FactType] = frozenset()

    def takes(self, fact: Fact) -> bool:
        """Whether the fact is one of them."""
        return (
            fact.namespace == self.namespace
            and (self.run_id is None or fact.run_id == self.run_id)
            and (self.workflow is None or fact.workflow == self.workflow)
            and (not self.types or fact.type in self.types)
        )


class RecentRow:
    """The facts of one transaction; each is encoded once, however many follow it."""

    __slots__ = ("_encoded", "_facts", "_runs", "count", "data", "number", "position")

    def __init__(self, row: OutboxRow) -> None:
        self.number = row.number
        self.position = row.position
        self.data = row.facts
        self._facts: tuple[Fact, ...] | None = None
        self._runs: Mapping[RunId, list[int]] | None = None
        self._encoded: dict[int, bytes] = {}
        self.count = len(self.facts)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All of them, in order; none when they cannot be read."""
        if self._facts is None:
            self._facts = _facts_of(self.data)
        return self._facts

    @property
    def runs(self) -> Mapping[RunId, list[int]]:
        """Which of the facts are about which run."""
        if self._runs is None:
            self._runs = _by_run(self.facts)
        return self._runs

    def fold(self) -> None:
        """Keep only what was read: unfolded, facts take three times the memory."""
        self._facts = self._runs = None

    def told(self, choice: Choice, seen: Place) -> Iterator[Told]:
        """What of it somebody wants who has come as far as `seen`."""
        indexes = range(self.count) if choice.run_id is None else self.runs.get(choice.run_id)
        for index in indexes or ():
            place = Place(self.position, index)
            if place > seen and choice.takes(self.facts[index]):
                yield Told(place, self._data(index))

    def _data(self, index: int) -> bytes:
        data = self._encoded.get(index)
        if data is None:
            name = f"{self.number}.{index}"
            event = Event(id=name, position=self.position, fact=self.facts[index])
            data = self._encoded[index] = encode_event(event)
        return data


class RecentRows:
    """Rows by position, without a hole: everything above `floor` up to `head`."""

    def __init__(self, head: int, facts_max: int) -> None:
        self.floor = head
        self.head = head
        self._facts_max = facts_max
        self._facts = 0
        self._rows: deque[RecentRow] = deque()

    def add(self, row: RecentRow) -> None:
        """Take the next row; after a hole, what was before it is forgotten."""
        if row.position != self.head + 1:
            self._rows.clear()
            self._facts = 0
            self.floor = row.position - 1
        self._rows.append(row)
        self._facts += row.count + 1
        self.head = row.position
        while self._facts > self._facts_max and len(self._rows) > 1:
            oldest = self._rows.popleft()
            self._facts -= oldest.count + 1
            self.floor = oldest.position

    def since(self, position: int) -> Iterator[RecentRow]:
        """Rows from this position on, as far as they are kept."""
        return islice(self._rows, max(0, position - self.floor - 1), None)


def _facts_of(data: bytes) -> tuple[Fact, ...]:
    try:
        return decode_facts(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()  # of a later release, or damaged: the relay sets it aside


def _by_run(facts: tuple[Fact, ...]) -> dict[RunId, list[int]]:
    runs: dict[RunId, list[int]] = {}
    for index, fact in enumerate(facts):
        runs.setdefault(fact.run_id, []).append(index)
    return runs


__all__ = ["WHOLE_ROW", "Choice", "Place", "RecentRow", "RecentRows", "Told"]
