"""Puts the services together, and keeps running what works beside requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tidemill.api.endings import Endings
from tidemill.api.following import Following
from tidemill.api.metrics import Meters
from tidemill.api.rates import Rates
from tidemill.api.services import Services
from tidemill.engine.submissions import Submissions
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import Store


def make_services(
    store: Store, bus: Bus, clock: Clock, entropy: Entropy, job_types: Sequence[str] = ()
) -> Services:
    """Services over a store; `duties_of` must run beside them."""
    following = Following(store=store, bus=bus, clock=clock)
    rates = Rates(clock)
    meters = Meters()
    following.listen(rates.hear)
    following.listen(meters.hear)
    return Services(
        store=store,
        bus=bus,
        clock=clock,
        entropy=entropy,
        submissions=Submissions(store, bus, entropy),
        following=following,
        endings=Endings(store, clock, following),
        rates=rates,
        meters=meters,
        job_types=tuple(job_types),
    )


def duties_of(services: Services) -> list[Coroutine[Any, Any, None]]:
    """What runs for as long as requests are answered."""
    return [services.following.run(), services.endings.run()]


@asynccontextmanager
async def serving(services: Services) -> AsyncIterator[Services]:
    """Run the duties while the block lasts: for tests, and for commands that serve themselves."""
    running = [asyncio.create_task(duty) for duty in duties_of(services)]
    try:
        yield services
    finally:
        services.stop()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await services.submissions.close()
