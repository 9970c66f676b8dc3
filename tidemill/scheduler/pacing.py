"""Pacing: how long to rest between two looks at the store.

While a foreign transaction holds its snapshot, rows that were claimed and finished leave dead
entries in the indexes that looks walk over, and a look takes longer the more has been done since.
A duty that rests in proportion stays a small part of the work.
"""

from __future__ import annotations

SHARE = 0.02
"""Of the time that looking may take."""

REST_SECONDS_MAX = 5.0
"""However long a look takes: what it finds must not wait for long."""


class Pace:
    """The pace of one duty. The quicker of its last two looks counts: one is slow by chance."""

    def __init__(self, usual_seconds: float) -> None:
        self._usual_seconds = usual_seconds
        self._took_before = 0.0

    def rest_after(self, took: float) -> float:
        """Seconds to rest after a look that took so long."""
        quicker, self._took_before = min(took, self._took_before), took
        return max(self._usual_seconds, min(quicker / SHARE, REST_SECONDS_MAX))
