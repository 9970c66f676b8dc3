"""Notices a database that has gone back, as after a failover to a replica that lacked commits.

A process remembers the latest outbox row that it knows to be committed, and looks for it on every
new connection. With synchronous replication it is always there. With asynchronous replication what
was committed last can be lost: nobody can bring it back, but it must not go unnoticed.
"""

from __future__ import annotations

import asyncio
import logging

from tidemill.stores.postgres.connection import Connection

log = logging.getLogger(__name__)

RECENT_SECONDS = 600.0
"""A row older than that may have left the outbox in the ordinary way."""

IS_THERE = "SELECT EXISTS (SELECT 1 FROM outbox WHERE number = $1)"


class HighWater:
    """How far the outbox is known to be, and whether it was ever found to be less far."""

    def __init__(self) -> None:
        self.alarm = ""
        self._number = 0
        self._known_at = 0.0

    def committed(self, number: int) -> None:
        """The outbox has this row; 0 stands for none."""
        if number > self._number:
            self._number = number
            self._known_at = asyncio.get_running_loop().time()

    async def check(self, connection: Connection) -> None:
        """Look for the latest row on a connection that is new."""
        age = asyncio.get_running_loop().time() - self._known_at
        if not self._number or age > RECENT_SECONDS:
            return
        if not await connection.fetchval(IS_THERE, self._number):
            self.alarm = (
                f"the database has gone back: outbox row {self._number}, known to be committed, is"
                " missing; what was committed last may be lost"
            )
            log.error("%s", self.alarm)
            self._number = 0
