"""Many starts in one request: an answer for each of them, in order."""

from __future__ import annotations

import msgspec

from tidemill.protocol.resources.problems import ProblemView

NDJSON_MEDIA_TYPE = "application/x-ndjson"
LINE_BYTES_MAX = 1_048_576
BULK_ITEMS_MAX = 100_000


class BulkItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one item: the run that it started, or found by its key, or a problem.

    `index` counts the items, or the lines that are not empty, from 0.
    """

    index: int = msgspec.field(default=-1)  # never left out: no item has it
    id: str | None = None
    created: bool = False
    problem: ProblemView | None = None


class BulkView(msgspec.Struct, frozen=True, kw_only=True):
    """One answer for each item of the array, in its order. Each item stands for itself."""

    items: tuple[BulkItem, ...]


__all__ = ["BULK_ITEMS_MAX", "LINE_BYTES_MAX", "NDJSON_MEDIA_TYPE", "BulkItem", "BulkView"]
