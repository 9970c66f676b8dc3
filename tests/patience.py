"""Connections that wait longer than a machine stalls, for tests in which one waits for another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from tidemill.stores.postgres import connection

TIMEOUTS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
PATIENT = {**connection.SETTINGS, **dict.fromkeys(TIMEOUTS, "60000")}


@contextmanager
def patient_connections() -> Iterator[None]:
    """Open pools of PostgreSQL in this block."""
    with patch.object(connection, "SETTINGS", PATIENT):
        yield
