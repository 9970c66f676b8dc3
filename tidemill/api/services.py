"""What handlers work with; runtime puts it together once per process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from tidemill.api.endings import Endings
from tidemill.api.following import Following
from tidemill.api.metrics import Meters
from tidemill.api.outputs import Outputs
from tidemill.api.rates import Rates
from tidemill.domain.identifiers import RunId
from tidemill.domain.run import Run
from tidemill.engine.identity.audit import Auditor
from tidemill.engine.identity.context import Identity
from tidemill.engine.plans import Plans
from tidemill.engine.submissions import Submissions
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.secrets import Sealing
from tidemill.ports.store import Store
from tidemill.protocol.messages import ProgressReport


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the process stands; `reasons` keep it from its work, `notes` are worth knowing."""

    role: str
    reasons: list[str] = []
    notes: list[str] = []


async def _well() -> HealthReport:
    return HealthReport(role="api")


def _no_progress(_: RunId) -> tuple[ProgressReport, ...]:
    return ()


async def _as_it_is(_: Run, __: bool) -> None:
    """Nobody has put the run aside."""


@dataclass(slots=True, kw_only=True)
class Services:
    """Ports and use cases, shared by all requests."""

    store: Store
    bus: Bus
    clock: Clock
    entropy: Entropy
    submissions: Submissions
    following: Following
    endings: Endings
    rates: Rates
    meters: Meters
    identity: Identity | None = None
    auditor: Auditor = field(init=False)
    sealing: Sealing | None = None  # None: no secrets can be kept
    job_types: tuple[str, ...] = ()
    outputs: Outputs = field(default_factory=Outputs)
    plans: Plans = field(default_factory=lambda: Plans(nodes_max=100_000))
    progress: Callable[[RunId], tuple[ProgressReport, ...]] = _no_progress
    health: Callable[[], Awaitable[HealthReport]] = _well
    steer: Callable[[Run, bool], Awaitable[None]] = _as_it_is
    """Called before a stored run is changed; True when its tasks will run again."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # the process is about to stop

    def __post_init__(self) -> None:
        self.auditor = Auditor(self.store)

    def stop(self) -> None:
        """End streams and waits: the process is about to stop."""
        self.closing.set()
        self.endings.dismiss()
