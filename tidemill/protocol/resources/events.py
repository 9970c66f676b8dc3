"""Events on the wire: facts as CloudEvents, one in each message of a stream."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tidemill.domain.facts import FactType
from tidemill.domain.patterns import EVENT_ID_PATTERN
from tidemill.protocol.cloud_events import CloudEvent, FactData

EVENT_STREAM_MEDIA_TYPE = "text/event-stream"
GAP_EVENT = "gap"
"""The name of a message that tells that events before it are no longer kept."""

EventView: TypeAlias = CloudEvent[FactData]

EventId: TypeAlias = Annotated[
    str,
    Meta(
        pattern=EVENT_ID_PATTERN,
        description="The id of the last event seen, `<position>.<index>`; 0 for the oldest kept.",
    ),
]


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events to follow, and from where; from now on when that is not said.

    The header `Last-Event-ID` says the same as `after`, and wins.
    """

    type: tuple[FactType, ...] = ()
    after: EventId | None = None
    seconds: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=86_400,
                description="How long to follow; 0 for what is there. No limit if left out.",
            ),
        ]
        | None
    ) = None


class EventMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a stream. Its data is an event (docs/events.md), in `gap` the missing part."""

    id: str
    data: Annotated[str, Meta(extra_json_schema={"contentMediaType": "application/json"})]
    event: Literal["message", "gap"] | UnsetType = UNSET
    retry: int | UnsetType = UNSET


class GapView(msgspec.Struct, frozen=True, kw_only=True):
    """Events between these two positions are no longer kept: look at the runs themselves."""

    after: int
    before: int


__all__ = [
    "EVENT_STREAM_MEDIA_TYPE",
    "GAP_EVENT",
    "EventId",
    "EventMessage",
    "EventView",
    "EventsQuery",
    "GapView",
]
