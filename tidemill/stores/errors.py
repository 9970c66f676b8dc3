"""Errors of stores that are not faults of the moment."""

from __future__ import annotations

from tidemill.domain.errors import TidemillError


class StoreRefused(TidemillError):
    """The database will never accept this write: repeating it is of no use."""
