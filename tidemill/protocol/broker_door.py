"""Where messages of a broker meet the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tidemill.protocol.broker_messages import Answer, Command, Heartbeat, Report


class Letter(NamedTuple):
    """Something to send."""

    topic: str
    key: str | None
    message: Command | Answer


class BrokerDoor(Protocol):
    """The scheduler's side of what workers say over a broker."""

    @property
    def name(self) -> str:
        """The scheduler, as its markers call it."""

    def hear(self, heartbeat: Heartbeat) -> None:
        """A worker is there."""

    def marker_came_back(self) -> None:
        """What is sent to the broker is delivered again."""

    def lose_sight(self) -> None:
        """The broker is out of reach: silence says nothing about workers."""

    def refusal(self, report: Report) -> str | None:
        """Why a report must not be listened to; None when it may be."""

    async def receive(self, reports: Sequence[Report]) -> None:
        """Take in what workers report, waiting while there is too much of it."""

    async def letters(self) -> list[Letter]:
        """Wait for something to send; the caller sends it, or loses it."""
