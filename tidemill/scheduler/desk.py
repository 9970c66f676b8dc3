"""The desk: what all duties of one scheduler share."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.engine.plans import Plans
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import Store
from tidemill.scheduler.backlog import Backlog
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.inbox import Inbox
from tidemill.scheduler.sessions import Sessions


@dataclass(slots=True)
class Desk:
    """One scheduler's ports and its memory. Nothing in it outlives the process or has to."""

    name: str
    store: Store
    bus: Bus
    clock: Clock
    entropy: Entropy
    config: SchedulerConfig
    inbox: Inbox = field(init=False)
    plans: Plans = field(default_factory=Plans)
    backlog: Backlog = field(default_factory=Backlog)
    sessions: Sessions = field(default_factory=Sessions)
    look_wanted: bool = False  # READY tasks may have appeared

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.config.inbox_items_max)

    def look_soon(self) -> None:
        """READY tasks may have appeared that nobody has told us of."""
        self.look_wanted = True
        self.inbox.wake()
