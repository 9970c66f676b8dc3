"""Handover: a worker arrives, comes back or leaves, in one transaction each.

A worker that lost its stream comes back under a new session. Only the same process knows the
secret of the old one. What it finished meanwhile is applied first, what it still runs is adopted
with its epoch unchanged, and whatever else the old session held goes back unspent.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence

import msgspec

from tidemill.domain.events import Adopted, Released
from tidemill.domain.identifiers import SECOND, Moment, RunId, SessionId, Token
from tidemill.domain.ledger import Ledger
from tidemill.engine.book import Book
from tidemill.engine.plans import Plans
from tidemill.ports.store import Opening, Session, Store, Transaction
from tidemill.protocol.messages import Hello, Outcome

SUCCESSORS_MAX = 100
"""How many Welcomes in a row may get lost before a worker counts as a new one."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that wants a session, and the names for it.

    A worker that comes back keeps its secret: it is the process that is known by it.
    """

    hello: Hello
    session_id: SessionId
    secret: str
    scheduler: str
    ttl_seconds: float


class Handover(msgspec.Struct, kw_only=True):
    """What became of what the worker held and had finished."""

    replaced: SessionId | None = None  # the session that the new one takes the place of
    secret: str = ""  # of the new session
    kept: list[Token] = []
    runs: set[RunId] = set()  # to be looked at: something may follow from what was handed over


class Handovers:
    """Carries handovers out."""

    def __init__(self, plans: Plans, chance: Callable[[], float], rows_max: int) -> None:
        self._plans = plans
        self._chance = chance
        self._rows_max = rows_max

    async def arrive(self, store: Store, arrival: Arrival) -> Handover:
        """Open a session, taking over the worker's earlier one if it can show that secret."""
        hello = arrival.hello
        async with store.transaction() as tx:
            mine = await tx.sessions.get(arrival.session_id)
            if mine is not None:
                # This very arrival, committed when the reply was lost.
                return await self._arrived(tx, arrival, mine)
            old = await _proven(tx, hello)
            handover = Handover()
            if old is not None or hello.finished:
                handover = await self._hand_over(tx, old, hello.finished, set(hello.held), arrival)
            handover.secret = arrival.secret if old is None else str(hello.secret)
            await tx.sessions.open(_session(arrival, handover.secret, await tx.now()))
        return handover

    async def _arrived(self, tx: Transaction, arrival: Arrival, mine: Session) -> Handover:
        kept = [task.token for task in await tx.sessions.held(arrival.session_id)]
        finished = (outcome.token for outcome in arrival.hello.finished)
        fresh = mine.secret_hash == hash_secret(arrival.secret)
        return Handover(
            secret=arrival.secret if fresh else str(arrival.hello.secret),
            kept=kept,
            runs={token.run_id for token in (*kept, *finished)},
        )

    async def depart(self, store: Store, session_id: SessionId) -> Handover:
        """Close the session of a worker that said goodbye; what it held goes back unspent."""
        async with store.transaction() as tx:
            await tx.sessions.get(session_id)
            return await self._hand_over(tx, session_id, (), set(), None)

    async def _hand_over(
        self,
        tx: Transaction,
        old: SessionId | None,
        finished: Sequence[Outcome],
        held: set[Token],
        arrival: Arrival | None,
    ) -> Handover:
        granted = [] if old is None else [task.token for task in await tx.sessions.held(old)]
        tokens = sorted({*granted, *(outcome.token for outcome in finished)})
        runs = sorted({token.run_id for token in tokens})
        opened = await tx.open(Opening((), runs, [token.key for token in tokens], wait=True))
        book = Book(tx, self._plans, opened.now, self._chance, self._rows_max)
        book.open_locked(opened.runs, opened.tasks)
        handover = Handover(replaced=old, runs=set(book.ledgers))
        for outcome in finished:
            ledger = book.ledgers.get(outcome.token.run_id)
            if ledger is not None and arrival is not None and _may_report(ledger, arrival):
                ledger.happen(outcome.token.position, outcome.report)
        for token in granted:
            self._pass_on(book, token, arrival if token in held else None, handover)
        await book.follow()
        await book.write()
        if old is not None and arrival is not None:
            await tx.sessions.replace(old, arrival.session_id)
        elif old is not None:
            await tx.sessions.close([old])
        return handover

    def _pass_on(self, book: Book, token: Token, heir: Arrival | None, handover: Handover) -> None:
        ledger = book.ledgers.get(token.run_id)
        if ledger is None:
            return
        if heir is None:
            ledger.happen(token.position, Released(token.epoch))
        elif ledger.happen(token.position, Adopted(token.epoch, heir.session_id)):
            handover.kept.append(token)


def _may_report(ledger: Ledger, arrival: Arrival) -> bool:
    return ledger.run.namespace == arrival.hello.namespace


def hash_secret(secret: str) -> str:
    """What the store keeps of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


async def _proven(tx: Transaction, hello: Hello) -> SessionId | None:
    """The session that holds what the worker was granted, if it can show the secret.

    A Welcome that never arrived leaves the worker with the name of a session that was replaced:
    what it held is with the successor, which has the same secret.
    """
    wanted = hello.session
    for _ in range(SUCCESSORS_MAX):
        if wanted is None or hello.secret is None:
            return None
        found = await tx.sessions.get(wanted)
        if found is None or not hmac.compare_digest(found.secret_hash, hash_secret(hello.secret)):
            return None
        if found.successor is None:
            return found.id
        wanted = found.successor
    return None


def _session(arrival: Arrival, secret: str, now: Moment) -> Session:
    hello = arrival.hello
    return Session(
        id=arrival.session_id,
        namespace=hello.namespace,
        worker=hello.worker,
        scheduler=arrival.scheduler,
        secret_hash=hash_secret(secret),
        slots=hello.slots,
        queues=hello.queues,
        labels=hello.labels,
        offers=(*hello.executors, *hello.offers),
        opened_at=now,
        expires_at=now + round(arrival.ttl_seconds * SECOND),
    )
