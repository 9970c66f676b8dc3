"""Trying again at once after a passing fault, a few times."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidemill.domain.errors import Unavailable
from tidemill.engine.plans import Plans, PlansMissing
from tidemill.ports.store import Store

TRIES_MAX = 5

T = TypeVar("T")


async def retrying(operation: Callable[[], Awaitable[T]]) -> T:
    """Repeat a use case after deadlocks and lost replies; it must find its own earlier write.

    Without a wait in between: a store that is really down is the caller's to wait for.
    """
    for _ in range(TRIES_MAX - 1):
        try:
            return await operation()
        except Unavailable:
            continue
    return await operation()


async def with_plans(store: Store, plans: Plans, operation: Callable[[], Awaitable[T]]) -> T:
    """Repeat a use case, loading the definitions that it misses."""

    async def once() -> T:
        try:
            return await operation()
        except PlansMissing as missing:
            await plans.load(store.payloads, missing.version_ids)
        return await operation()

    return await retrying(once)
