"""What must come true once faults have stopped: everything ends, and the world is told."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator

from tests.simulation.checkers import SLOTS
from tests.simulation.cluster import Cluster
from tests.simulation.database import Database
from tests.simulation.fold import ENDINGS, RUN_ENDINGS
from tests.simulation.nodes import Node
from tests.simulation.observer import Observer
from tests.simulation.sim_bus import Hub
from tests.simulation.violation import Violation
from tests.simulation.workload import Submission
from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Succeeded
from tidemill.domain.facts import Fact, decode_facts
from tidemill.domain.identifiers import SECOND, RunId, Token

END_SECONDS_MAX = 240.0
"""I2: so long after the last fault every accepted run has ended."""

SETTLE_SECONDS = 20.0
"""Sessions of the dead expire and their workers' successors connect within this time."""

START_SECONDS_MAX = 10.0
"""I10: two sweeps; a READY task starts within this time while a slot is free."""

TIMER_SECONDS_MAX = 8.0
"""I12: a timer that has run out is acted upon within this time."""

PUBLISH_SECONDS_MAX = 60.0

HISTORY = """
SELECT t.run_id, t.position, t.state, t.epoch, t.started_at,
    (SELECT count(*) FROM attempt AS a WHERE a.run_id = t.run_id AND a.position = t.position),
    (SELECT data FROM task_result AS r WHERE r.run_id = t.run_id AND r.position = t.position)
FROM task AS t
"""


class Liveness:
    """Watches the second phase."""

    def __init__(
        self,
        observer: Observer,
        hub: Hub,
        wishes: list[Submission],
        cluster: Cluster,
        database: Database,
    ) -> None:
        self._cluster = cluster
        self._database = database
        self._observer = observer
        self.mixed_offers = False
        self._look = observer.look
        self._hub = hub
        self._wishes = wishes

    async def watch(self) -> None:
        """Look every second until everything has ended or a bound is passed."""
        for second in range(int(END_SECONDS_MAX)):
            if self._all_ended():
                break
            await asyncio.sleep(1.0)
            if second > SETTLE_SECONDS:
                self._observer.report(*self.check_starts(), *self.check_timers())
        else:
            self._observer.report(*self.check_ended())
            return
        self._observer.report(*self.check_accepted())
        await self._look_at_history()
        await self._await_publishing()

    async def _look_at_history(self) -> None:
        """Look when nobody is in a transaction, whose half-done work the look would see."""
        observer = Node(self._cluster.loop, "observer")
        while True:
            try:
                hold = await self._database.take(observer)
            except Unavailable:
                continue
            self._observer.report(*self.check_history())
            hold.release()
            return

    async def _await_publishing(self) -> None:
        if self._hub.deleted:
            return
        for _ in range(int(PUBLISH_SECONDS_MAX)):
            if not any(self.check_published()):
                break
            await asyncio.sleep(1.0)
        self._observer.report(*self.check_published(), *self.check_order())

    def _all_ended(self) -> bool:
        clients = (role for name, role in self._cluster.roles.items() if name.startswith("client"))
        done = all(client.finished for client in clients)
        return done and all(run.state in RUN_ENDINGS for run in self._look.runs.values())

    def check_ended(self) -> Iterator[Violation]:
        """I2: no accepted run is lost or stuck."""
        for wish in self._wishes:
            if not wish.answered >= set(wish.clients):
                yield Violation("I2", f"the start of {wish.workflow.name} is never answered")
        for key, row in self._look.tasks.items():
            if row.state not in ENDINGS:
                run = self._look.runs[key.run_id]
                yield Violation("I2", f"{key} stays {row} in {run}")
        for run in self._look.runs.values():
            if run.state not in RUN_ENDINGS:
                yield Violation("I2", f"a run never ends: {run}")

    def check_starts(self) -> Iterator[Violation]:
        """I10: a READY task does not wait while there is a slot for it."""
        granted = [row for row in self._look.tasks.values() if row.session_id is not None]
        # Where workers offer different functions, a slot may be free and of no use.
        full = 1 if self.mixed_offers else len(self._cluster.living("worker"))
        if len(granted) >= SLOTS * full:
            return
        for row in self._look.tasks.values():
            waited = (self._observer.now() - (row.ready_at or 0)) / SECOND
            if row.state == "READY" and row.hold is None and waited > START_SECONDS_MAX:
                yield Violation("I10", f"{row.token} has been READY for {waited:.1f} s")

    def check_timers(self) -> Iterator[Violation]:
        """I12: what is due is done."""
        for row in self._look.tasks.values():
            if row.due_at is None or row.state not in {"BACKOFF", "RUNNING", "READY"}:
                continue
            late = (self._observer.now() - row.due_at) / SECOND
            if late > TIMER_SECONDS_MAX:
                yield Violation("I12", f"{row.token} is {row.state}, {late:.1f} s overdue")

    def check_accepted(self) -> Iterator[Violation]:
        """I13: each key has one run, each accepted run is there, and nothing else is."""
        known: set[RunId] = set()
        for wish in self._wishes:
            if len(wish.accepted) != 1:
                yield Violation("I13", f"{wish.key} has started {sorted(wish.accepted)}")
            known |= wish.accepted
        if known != self._look.runs.keys():
            yield Violation("I13", f"accepted {sorted(known)}, stored {sorted(self._look.runs)}")

    def check_history(self) -> Iterator[Violation]:
        """I3, I13: results are those of the last grant, and each grant left one attempt."""
        for run_id, position, state, epoch, last, earlier, result in self._observer.query(HISTORY):
            token = Token(run_id, position, epoch)
            said = self._look.executions.reports.get(token)
            if state == "SUCCEEDED" and isinstance(said, Succeeded) and said.result != result:
                yield Violation("I3", f"the result of {token} is {result!r}, not {said.result!r}")
            if state != "SUCCEEDED" and result is not None:
                yield Violation("I3", f"{token} is {state} and has the result {result!r}")
            if earlier + (last is not None) != epoch:
                yield Violation("I13", f"{token} ({state}) keeps {earlier} attempts, last {last}")

    def check_published(self) -> Iterator[Violation]:
        """I6: every fact reaches the bus."""
        told = {event.id for event in self._hub.published}
        missing = len(self._look.fact_ids) - len(told)
        if missing:
            yield Violation("I6", f"{missing} of {len(self._look.fact_ids)} facts never published")

    def check_order(self) -> Iterator[Violation]:
        """I6: of each run, facts first appear in the order in which they were committed."""
        committed: dict[RunId, list[Fact]] = defaultdict(list)
        for data in self._look.outbox:
            for fact in decode_facts(data):
                committed[fact.run_id].append(fact)
        told: dict[RunId, list[Fact]] = defaultdict(list)
        seen: set[str] = set()
        for event in self._hub.published:
            if event.id not in seen:
                seen.add(event.id)
                told[event.fact.run_id].append(event.fact)
        for run_id, facts in committed.items():
            if told[run_id] != facts:
                yield Violation("I6", f"facts of run {run_id} were published out of order")
