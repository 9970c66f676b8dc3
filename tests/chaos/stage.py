"""The stage of a campaign: servers, roles, the load, and ways to ask how far things are."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg

from tests.chaos.faults import LINES, Fault, Line, script
from tests.chaos.listener import Listener
from tests.chaos.load import ANSWER_SECONDS, ASYNCPG_ERRORS
from tests.chaos.work import MARKS
from tests.deployment import Deployment, RoleProcess
from tests.servers import KafkaServer, PostgresServer, RedisServer, Server
from tidemill.domain.facts import decode_facts

WORK = Path(__file__).with_name("work.py")
# As it comes: full durability. Only what is not needed on one machine is left out.
POSTGRES_OPTIONS = {"listen_addresses": "", "log_min_messages": "fatal"}
LOOK_SECONDS = 0.25
FACTS = "SELECT facts FROM outbox"


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What to do, and how hard."""

    seconds: float
    seed: int
    bus: str = "redis"  # kafka, redis or postgresql
    via: str | None = None  # kafka or redis: workers talk over it
    schedulers: int = 2
    workers: int = 3
    notifiers: int = 2
    slots: int = 16
    open_runs: int = 400
    rate_min: float = 1_000.0
    lines: tuple[Line, ...] = LINES
    keep: Path | None = None  # where logs and marks stay

    @property
    def broker(self) -> str | None:
        """Which broker is needed at all."""
        return self.via or (None if self.bus == "postgresql" else self.bus)

    def settings(self) -> dict[str, Any]:
        """What the report says about it."""
        hidden = {"lines", "keep", "seed", "seconds"}
        shown = {name: value for name, value in asdict(self).items() if name not in hidden}
        return {**shown, "postgres": POSTGRES_OPTIONS, "cores": os.cpu_count()}

    def fault_names(self) -> list[str]:
        """Every kind of fault that the script holds."""
        return [f"{line.role}_{line.kind}" for line in self.lines_used()]

    def script(self) -> list[Fault]:
        """Everything that will happen."""
        return script(self.seed, self.seconds, self.lines_used())

    def lines_used(self) -> tuple[Line, ...]:
        """Without those for a broker that is not there."""
        return tuple(line for line in self.lines if line.role != "broker" or self.broker)


class Stage:
    """Everything that runs during a campaign."""

    def __init__(self, campaign: Campaign, folder: Path) -> None:
        self.campaign = campaign
        self.folder = folder
        self.accepted = folder / "accepted"
        self.marks = folder / "marks"
        self.postgres = PostgresServer(POSTGRES_OPTIONS)
        self.servers: dict[str, Server] = {"postgres": self.postgres}
        if campaign.broker is not None:
            kinds = {"kafka": KafkaServer, "redis": RedisServer}
            self.servers["broker"] = kinds[campaign.broker]()
        self.listener = Listener()

    @property
    def bus_url(self) -> str:
        """The address of the bus."""
        if self.campaign.bus == "postgresql":
            return self.postgres.url
        return self.servers["broker"].url

    @property
    def keeps_events(self) -> bool:
        """Whether the bus keeps what nobody has read yet, also when it is killed."""
        broker = self.servers.get("broker")
        if self.campaign.bus == "postgresql" or broker is None:
            return False
        return not isinstance(broker, KafkaServer) or broker.durable

    def deployment(self) -> Deployment:
        """The roles, not yet started."""
        campaign = self.campaign
        via = self.servers["broker"].url if campaign.via else None
        environment = {MARKS: str(self.marks)}
        roles = Deployment(self.folder, self.postgres.url, self.bus_url, via, environment)
        for _ in range(campaign.schedulers):
            roles.add_scheduler()
        for _ in range(campaign.workers):
            slots = str(campaign.slots)
            roles.add_worker("--import", str(WORK), "--slots", slots, "--grace", "3")
        for _ in range(campaign.notifiers):
            roles.add_notifier()
        return roles

    def load(self) -> RoleProcess:
        """The generator of load, not yet started."""
        command = [sys.executable, "-m", "tests.chaos.load", "--store", self.postgres.url]
        command += ["--bus", self.bus_url, "--seed", str(self.campaign.seed)]
        command += ["--open", str(self.campaign.open_runs), "--accepted", str(self.accepted)]
        return RoleProcess("load", command, self.folder)

    async def ask(self, query: str) -> int:
        """One number from the store, as soon as it answers."""
        ((number,),) = await self._rows(query)
        return int(number)

    async def _rows(self, query: str) -> list[asyncpg.Record]:
        while True:
            try:
                return await self._ask(query)
            except ASYNCPG_ERRORS:
                await asyncio.sleep(LOOK_SECONDS)

    async def _ask(self, query: str) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.postgres.url, timeout=ANSWER_SECONDS)
        try:
            return await connection.fetch(query, timeout=ANSWER_SECONDS)
        finally:
            connection.terminate()

    async def count_facts(self) -> int:
        """How many facts the outbox holds."""
        return sum(len(decode_facts(facts)) for (facts,) in await self._rows(FACTS))

    async def until(self, query: str, wanted: range, seconds_max: float) -> float:
        """Wait for the number to be within the range; return how long it took at most."""
        begin = time.monotonic()
        while await self.ask(query) not in wanted:
            if time.monotonic() - begin >= seconds_max:
                break
            await asyncio.sleep(LOOK_SECONDS)
        return time.monotonic() - begin
