"""The workers connected here: their sessions, slots and grants."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from tidemill.domain.identifiers import SessionId, Token
from tidemill.domain.routes import serves
from tidemill.protocol.messages import Acks, Assignments, Hello, ProgressReport, SchedulerMessage


class AttachedSession:
    """One worker process, connected to this scheduler."""

    start_seconds: float | None = None  # a session begins what it is granted at once

    def __init__(self, session_id: SessionId, hello: Hello, outgoing_max: int) -> None:
        self.id = session_id
        self.worker = hello.worker
        self.namespace = hello.namespace
        self.queues = frozenset(hello.queues)
        self.labels = hello.labels
        self.offers = frozenset((*hello.executors, *hello.offers))
        self.slots = hello.slots
        self.granted: dict[Token, float] = {}  # and when, by this process's steady clock
        self.promised = 0  # slots that a turn under way may fill
        self.progress: dict[Token, ProgressReport] = {}
        self.alone: Token | None = None  # a suspect that must have the worker to itself
        self.reserved_until: float | None = None  # gets nothing more, for a suspect's sake
        self.rests_until = 0.0  # and after that is not reserved again for a while
        self.in_doubt = False  # the store calls it closed or expired; the next renewal tells
        self.blocked = False  # has more to say than the inbox can take
        self.pending = 0  # reports received but not yet committed
        self.held: frozenset[Token] = frozenset()  # what the worker last said it holds
        self.held_at: float | None = None  # and when; None once the keeper has compared it
        self._unreported: set[Token] = set()  # held by the worker, but not counted here
        self._missing: dict[Token, float] = {}  # grants that the worker does not hold, since when
        self._given_up: set[Token] = set()  # released by the keeper, until the store says so
        self.heard = True  # since the last renewal
        self.departed = False  # said goodbye
        self.outgoing = Outgoing(outgoing_max, joins_acks=hello.joins_acks)

    @property
    def free(self) -> int:
        """Slots that may be filled now."""
        if self.departed or self.in_doubt or self.reserved or self.alone in self.granted:
            return 0
        return max(0, self.slots - len(self.granted) - self.promised)

    @property
    def idle(self) -> bool:
        """Whether the worker runs nothing and could run something."""
        able = not self.departed and not self.in_doubt and self.slots > 0
        return able and not self.granted and not self.promised

    @property
    def reserved(self) -> bool:
        """Whether the worker gets nothing more until it is idle, for a suspect's sake."""
        return self.reserved_until is not None

    def serves(self, namespace: str, route: str) -> bool:
        """Whether the worker may run tasks of this route."""
        return namespace == self.namespace and serves(route, self.queues, self.labels, self.offers)

    def room(self, route: str) -> int:
        """Slots that may be filled now with tasks of a route that it serves."""
        return self.free

    def grant(self, token: Token, at: float) -> None:
        """Count a committed grant, or begin to wait for the worker to hold it."""
        if token not in self._given_up:
            self.granted[token] = at
            self._missing.pop(token, None)

    def keep_alone(self, token: Token) -> None:
        """The grant is of a suspect, which must have the worker to itself."""
        self.alone = token
        self.reserved_until = None

    def over(self, token: Token) -> None:
        """The worker is done with a grant: its slot is free again."""
        self.granted.pop(token, None)
        self.progress.pop(token, None)
        if self.alone == token:
            self.alone = None

    def give_up(self, token: Token) -> None:
        """The grant goes back: it must not be sent any more, even if its commit answers late."""
        self.over(token)
        self._given_up.add(token)

    def missing_for(self, tokens: Iterable[Token], now: float, seconds: float) -> set[Token]:
        """Of these grants, which the worker does not hold: those missing for so long by now."""
        self._missing = {token: self._missing.get(token, now) for token in tokens}
        self._given_up &= self._missing.keys()
        return {token for token, since in self._missing.items() if now - since > seconds}

    def take_word(self) -> Word | None:
        """What the worker last said it holds; None when that was compared already."""
        said_at, self.held_at = self.held_at, None
        return None if said_at is None else Word(self, self.held, said_at)

    def unreported_again(self, tokens: set[Token]) -> bool:
        """Whether one of these was held without being counted here at the last comparison too."""
        again = bool(tokens & self._unreported)
        self._unreported = tokens
        return again

    @property
    def unsent(self) -> bool:
        """Whether messages wait for the worker to take them."""
        return bool(self.outgoing)

    def send(self, message: SchedulerMessage) -> None:
        """Queue a message; a worker that does not read its messages is cut off."""
        self.outgoing.put(message)

    def end(self) -> None:
        """End the stream from this side, dropping what was not sent."""
        self.outgoing.end()


class Outgoing:
    """Messages on their way to one worker, in order; what is too much ends the stream.

    What a turn acknowledges and what it grants leave as one message, for a worker that joins acks:
    a message costs both sides as much as a dozen tasks in it.
    """

    def __init__(self, messages_max: int, *, joins_acks: bool) -> None:
        self.ended = False
        self._messages_max = messages_max
        self._joins_acks = joins_acks
        self._messages: deque[SchedulerMessage] = deque()
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: SchedulerMessage) -> None:
        """Add a message, unless the stream is at its end, or comes to it for there being many."""
        if len(self._messages) >= self._messages_max:
            self.end()
        if not self.ended:
            self._messages.append(message)
            self._news.set()

    def end(self) -> None:
        """Send nothing more, not even what waits."""
        self.ended = True
        self._messages.clear()
        self._news.set()

    async def wait(self) -> None:
        """Wait until there is something to take, or the end."""
        if not self._messages and not self.ended:
            self._news.clear()
            await self._news.wait()

    def take(self) -> SchedulerMessage | None:
        """The next message; None when there is none."""
        if not self._messages:
            return None
        first = self._messages.popleft()
        if self._joins_acks and isinstance(first, Acks) and self._messages:
            second = self._messages[0]
            if isinstance(second, Assignments):
                self._messages.popleft()
                return Assignments(second.assignments, first)
        return first


class Word(NamedTuple):
    """What a worker said it holds, and when."""

    session: AttachedSession
    held: frozenset[Token]
    said_at: float


class Sessions:
    """All sessions attached to this scheduler."""

    def __init__(self) -> None:
        self._sessions: dict[SessionId, AttachedSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def all(self) -> list[AttachedSession]:
        """Every attached session, in the order of attaching."""
        return list(self._sessions.values())

    def get(self, session_id: SessionId | None) -> AttachedSession | None:
        """A session, if it is attached here."""
        return None if session_id is None else self._sessions.get(session_id)

    def add(self, session: AttachedSession) -> None:
        """Attach."""
        self._sessions[session.id] = session

    def remove(self, session: AttachedSession) -> None:
        """Detach."""
        self._sessions.pop(session.id, None)

    def heard_from(self) -> list[AttachedSession]:
        """Sessions heard from since the last call."""
        heard = [session for session in self.all() if session.heard or session.blocked]
        for session in heard:
            session.heard = False
        return heard

    def end(self, session_ids: Iterable[SessionId]) -> None:
        """End the streams of these sessions."""
        for session_id in session_ids:
            session = self._sessions.get(session_id)
            if session is not None:
                session.end()
