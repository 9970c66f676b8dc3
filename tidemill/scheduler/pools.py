"""Workers behind a broker: who has been heard of, and what their pools could take.

Every scheduler hears every heartbeat, so all of them know the same workers. A pool is one holder
of grants, whose free slots are counted in the transaction that fills them, under a lock of the
pool's row: schedulers do not grant the same slot twice. What is believed here in between only
says when a count is worth its while.

While what this scheduler sends does not come back, silence says nothing about workers: it keeps
the sessions that it knew alive, and grants nothing that could not be sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from tidemill.domain.identifiers import SECOND, SessionId, Token
from tidemill.domain.pools import PoolKey, pool_key
from tidemill.domain.routes import is_offered, read_route, serves
from tidemill.ports.clock import Clock
from tidemill.protocol.broker_codec import command_of
from tidemill.protocol.broker_door import Letter
from tidemill.protocol.broker_messages import Command, Heartbeat, session_of, tokens_from
from tidemill.protocol.messages import Assignments, ProgressReport, SchedulerMessage
from tidemill.scheduler.config import SchedulerConfig
from tidemill.scheduler.continuity import Continuity
from tidemill.scheduler.letters import Letters

SESSIONS_MAX = 10_000
COMMANDS_MAX = 10_000
"""That wait to be sent."""

POOL_LIFE = 86_400 * SECOND
"""Of the row of a pool that nobody serves any more."""


class BrokerSession:
    """A worker behind the broker, as its latest heartbeat tells."""

    def __init__(self, heartbeat: Heartbeat, at: float) -> None:
        self.id = session_of(heartbeat)
        self.worker = heartbeat.worker
        self.key = pool_key(heartbeat.namespace, heartbeat.queues, heartbeat.labels)
        self.offers = frozenset((*heartbeat.executors, *heartbeat.offers))
        self.opened = False  # its row is there
        self._missing: dict[Token, float] = {}
        self.progress: dict[Token, ProgressReport] = {}
        self._fresh: set[Token] = set()  # progress of these came since the last heartbeat
        self.update(heartbeat, at)

    def update(self, heartbeat: Heartbeat, at: float) -> None:
        """Take over what it says."""
        self.number = heartbeat.number
        self.greeted = heartbeat.greeted
        self.slots = heartbeat.slots
        self.held = frozenset(tokens_from(heartbeat.held))
        self.unbound = frozenset(tokens_from(heartbeat.unbound))
        self.heard_at = at
        self.heard = True  # since the last renewal
        self.compared = False
        known = self.held | self._fresh
        self._fresh = set()
        self.progress = {token: one for token, one in self.progress.items() if token in known}

    def advance(self, report: ProgressReport) -> None:
        """Note how far an attempt has come; one just begun is in no heartbeat yet."""
        if len(self.progress) < 2 * self.slots or report.token in self.progress:
            self.progress[report.token] = report
            self._fresh.add(report.token)

    def missing_for(self, tokens: Iterable[Token], now: float, seconds: float) -> set[Token]:
        """Of these grants, which the worker does not hold: those missing for so long by now."""
        self._missing = {token: self._missing.get(token, now) for token in tokens}
        return {token for token, since in self._missing.items() if now - since > seconds}

    def is_about(self, heartbeat: Heartbeat) -> bool:
        """Whether a heartbeat is of the same worker: nobody changes pools under a session."""
        return self.key == pool_key(heartbeat.namespace, heartbeat.queues, heartbeat.labels)


class BrokerWord(NamedTuple):
    """What a worker said it runs or has finished, and what it has in hand."""

    session: BrokerSession
    held: frozenset[Token]
    unbound: frozenset[Token]


class Pool:
    """The workers of one kind behind the broker: holds grants until one of them takes them up."""

    reserved = False

    def __init__(self, key: PoolKey, letters: Letters, clock: Clock, start_seconds: float) -> None:
        self.id = key.id
        self.key = key
        self.start_seconds: float | None = start_seconds
        self.opened = False  # its row is there
        self.free = 0  # slots, as last counted or guessed
        self.granted: dict[Token, float] = {}  # here, and not sent yet
        self.known: set[SessionId] = set()  # all of its workers
        self.members: dict[SessionId, BrokerSession] = {}  # those to count on
        self._letters = letters
        self._clock = clock
        self._patience = start_seconds
        self._guessed_at = 0.0
        self._alone: dict[Token, float] = {}  # suspects that may not be taken up yet
        self._labels = dict(key.labels)
        self._rooms: dict[SessionId, int] = {}  # free slots of each worker
        self._promised = 0  # of them: to what the pool holds

    @property
    def idle(self) -> bool:
        """Whether a suspect may be granted: one for each worker that runs nothing, at least one."""
        now = self._clock.monotonic()
        self._alone = {token: at for token, at in self._alone.items() if now - at < self._patience}
        idle = sum(not one.held for one in self.members.values())
        return self.free > 0 and len(self._alone) < max(1, idle)

    def serves(self, namespace: str, route: str) -> bool:
        """Whether some of its workers may run tasks of this route."""
        if namespace != self.key.namespace or not serves(route, self.key.queues, self._labels):
            return False
        need = read_route(route).need
        return not need or any(is_offered(need, one.offers) for one in self.members.values())

    def room(self, route: str) -> int:
        """Free slots for tasks of a route: of the workers that offer what they need.

        What the pool holds already may be taken up by any of them, so it counts in full.
        """
        need = read_route(route).need
        others = [one for one in self.members.values() if not is_offered(need, one.offers)]
        if not others:
            return self.free
        left = sum(self._rooms.values()) - sum(self._rooms.get(one.id, 0) for one in others)
        return max(0, min(self.free, left - self._promised))

    def count(self, granted: Mapping[SessionId, int], freed: Mapping[SessionId, int]) -> None:
        """Take over what the store has counted, but for what this very turn has ended."""
        self._rooms = {
            one.id: max(0, one.slots - granted[one.id] + freed.get(one.id, 0))
            for one in self.members.values()
            if one.id in granted  # others joined while the store was counting
        }
        self._promised = granted[self.id] - freed.get(self.id, 0)
        self.free = max(0, sum(self._rooms.values()) - self._promised)

    def lose_row(self) -> None:
        """The row of the pool is gone: grant nothing until it is written again."""
        self.opened = False
        self.free = 0

    def guess(self, seconds: float) -> None:
        """Believe the heartbeats for a moment, now and then: others may have ended tasks."""
        now = self._clock.monotonic()
        if (self.free <= 0 or self._is_mixed) and now - self._guessed_at >= seconds:
            self._guessed_at = now
            # Of a grant that could not be sent nobody hears again; its time is over by itself.
            self.granted = {
                token: at for token, at in self.granted.items() if now - at < self._patience
            }
            self._rooms = {
                one.id: max(0, one.slots - len(one.held)) for one in self.members.values()
            }
            unbound = sum(len(one.unbound) for one in self.members.values())
            self._promised = unbound + len(self.granted)
            self.free = max(0, sum(self._rooms.values()) - self._promised)

    @property
    def _is_mixed(self) -> bool:
        """Whether some workers offer what others do not: then free slots alone say little."""
        return len({one.offers for one in self.members.values()}) > 1

    def freed_of(self, freed: Mapping[SessionId, int]) -> int:
        """Of the grants that a turn ended: those of the pool and its workers."""
        return sum(freed.get(holder, 0) for holder in (self.id, *self.members)) if freed else 0

    def grant(self, token: Token, at: float) -> None:
        """Count a committed grant."""
        if token not in self.granted:
            self.free = max(0, self.free - 1)
            self._promised += 1
        self.granted[token] = at

    def keep_alone(self, token: Token) -> None:
        """Remember that a grant is of a suspect."""
        self._alone[token] = self._clock.monotonic()

    def over(self, token: Token) -> None:
        """The grant is not sent after all."""
        self.granted.pop(token, None)

    def send(self, message: SchedulerMessage) -> None:
        """Have commands sent; each goes to one of the workers."""
        assert isinstance(message, Assignments), "a pool hears of grants only"
        for assignment in message.assignments:
            self.granted.pop(assignment.token, None)
            alone = assignment.token in self._alone
            self._letters.put(self._letter(command_of(assignment, self.key.namespace, alone)))

    def _letter(self, command: Command) -> Letter:
        return Letter(self.key.topic, None, command)


class Pools:
    """All pools and their workers, as far as this scheduler has heard of them."""

    def __init__(self, name: str, clock: Clock, config: SchedulerConfig) -> None:
        self.letters = Letters(name, COMMANDS_MAX)
        self.path = Continuity(clock, config.session_ttl_seconds / 2)
        self.serving = False  # this scheduler listens to a broker
        self._clock = clock
        self._config = config
        self._pools: dict[SessionId, Pool] = {}
        self._sessions: dict[SessionId, BrokerSession] = {}

    def __bool__(self) -> bool:
        return bool(self._sessions)

    @property
    def steady(self) -> bool:
        """Whether the broker brought everything for so long that silence means something."""
        return self.path.is_recent and self.path.lasted(self._config.session_ttl_seconds)

    def all(self) -> list[Pool]:
        """Every pool, in the order of its first worker."""
        return list(self._pools.values())

    def open(self) -> list[Pool]:
        """Pools that may be granted something: commands to them would be delivered."""
        if not self._sessions or not self.path.is_recent:
            return []
        return [pool for pool in self._pools.values() if pool.opened and pool.members]

    def sessions(self) -> list[BrokerSession]:
        """Every worker, in the order of first hearing of it."""
        return list(self._sessions.values())

    def get(self, session_id: SessionId | None) -> BrokerSession | None:
        """A worker, if it was heard of."""
        return None if session_id is None else self._sessions.get(session_id)

    def pool(self, pool_id: SessionId) -> Pool | None:
        """A pool by its id."""
        return self._pools.get(pool_id)

    def pool_of(self, session: BrokerSession) -> Pool:
        """The pool of a worker."""
        return self._pools[session.key.id]

    @property
    def is_full(self) -> bool:
        """Whether no more workers can be kept in mind."""
        return len(self._sessions) >= SESSIONS_MAX

    def add(self, session: BrokerSession) -> None:
        """Note a worker that was not heard of before."""
        self._sessions[session.id] = session
        pool = self._pools.get(session.key.id)
        if pool is None:
            seconds = self._config.broker_start_bound_seconds
            pool = self._pools[session.key.id] = Pool(
                session.key, self.letters, self._clock, seconds
            )
        pool.known.add(session.id)
        self._enlist(pool, session)

    def heard(self, session: BrokerSession) -> None:
        """A worker has said something new, or its row is there; one forgotten meanwhile is not."""
        if self._sessions.get(session.id) is not session:
            return
        pool = self.pool_of(session)
        self._enlist(pool, session)
        pool.guess(self._config.scan_seconds)

    def remove(self, session: BrokerSession) -> None:
        """Forget a worker, and its pool with the last one."""
        if self._sessions.get(session.id) is not session:
            return
        del self._sessions[session.id]
        pool = self.pool_of(session)
        pool.members.pop(session.id, None)
        pool.known.discard(session.id)
        if not pool.known:
            del self._pools[pool.id]

    def close(self, sessions: Iterable[BrokerSession]) -> None:
        """Tell workers that their sessions are over, and forget them."""
        for session in sessions:
            self.letters.draft(session.id, session.key.namespace).closed = True
            self.remove(session)

    def to_compare(self) -> list[BrokerWord]:
        """What workers have said since the last call that they hold."""
        fresh = [one for one in self._sessions.values() if one.opened and not one.compared]
        for session in fresh:
            session.compared = True
        return [BrokerWord(one, one.held, one.unbound) for one in fresh]

    def ask_to_stop(self, session_id: SessionId, tokens: Collection[Token]) -> None:
        """Have a worker stop what it runs, if it is one behind the broker."""
        session = self._sessions.get(session_id)
        if session is not None and tokens:
            draft = self.letters.draft(session.id, session.key.namespace)
            draft.cancel |= dict.fromkeys(tokens)

    def to_renew(self) -> list[BrokerSession]:
        """Workers heard from since the last call; all that are known, while silence is no sign."""
        if not self._sessions:
            return []
        self._leave_out_silent()
        chosen = [one for one in self.sessions() if one.opened and (one.heard or not self.steady)]
        for session in chosen:
            session.heard = False
        return chosen

    def _enlist(self, pool: Pool, session: BrokerSession) -> None:
        if session.opened:
            pool.members[session.id] = session

    def _leave_out_silent(self) -> None:
        """Count on nobody who fell silent; once that is a sign, forget those who stayed so."""
        if not self.path.is_recent:
            return
        now = self._clock.monotonic()
        for session in self.sessions():
            silent = now - session.heard_at
            if silent > self._config.silence_seconds:
                self.pool_of(session).members.pop(session.id, None)
            if self.steady and silent > 2 * self._config.session_ttl_seconds:
                self.remove(session)
