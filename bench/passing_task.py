"""The task of chains that pass results on, imported by workers."""

from __future__ import annotations

from typing import Any


async def pass_on(value: Any) -> Any:
    """Return what came."""
    return value
