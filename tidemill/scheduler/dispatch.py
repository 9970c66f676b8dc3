"""Dispatch: after the commit, tell the workers what concerns them."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidemill.domain.errors import Unavailable
from tidemill.domain.events import Bound
from tidemill.domain.identifiers import RunId, SessionId, TaskKey, Token
from tidemill.protocol import messages
from tidemill.protocol.messages import Acks, Cancels
from tidemill.scheduler.admission import Grant, Holder
from tidemill.scheduler.assignments import Assignments, Batches, Built, size_of, too_large
from tidemill.scheduler.desk import Desk
from tidemill.scheduler.handed_secrets import HandedSecrets
from tidemill.scheduler.inbox import Item, TaskItem
from tidemill.scheduler.pools import Pool
from tidemill.scheduler.turn import TurnResult

log = logging.getLogger(__name__)

READ_TRIES_MAX = 3
BATCH_BYTES_MAX = 4 * 1024 * 1024
"""Of assignments in one message, well below what the wire takes."""


class Parcel(NamedTuple):
    """What one turn granted, and what it has seen: results and inputs need not be read again."""

    grants: Sequence[Grant]
    known: Mapping[TaskKey, bytes]
    inputs: Mapping[RunId, bytes]


class Dispatch:
    """Sends assignments, acknowledgements and cancellations."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.secrets = HandedSecrets(desk.store.payloads)
        self.assignments = Assignments(desk.store.payloads)
        self._parcels: asyncio.Queue[Parcel] = asyncio.Queue(desk.config.dispatch_parallelism)

    async def run(self) -> None:
        """Send what was granted, several batches at once, while the next turns are taken."""
        async with asyncio.TaskGroup() as senders:
            for _ in range(self._desk.config.dispatch_parallelism):
                senders.create_task(self._send_parcels())

    async def hand_over(self, parcel: Parcel) -> None:
        """Send grants to their workers: now, where nothing must be read for it, or soon.

        Waits while too many others are on their way.
        """
        self.assignments.remember(parcel.inputs)
        left = self._send_at_once(parcel)
        if left:
            await self._parcels.put(parcel._replace(grants=left))

    def _send_at_once(self, parcel: Parcel) -> Sequence[Grant]:
        """Send those grants for which all that they need is at hand; return the others."""
        if self.secrets.are_named(parcel.grants):
            return parcel.grants
        try:
            built, left = self.assignments.build_at_once(parcel.grants, parcel.known)
            self._send_out(built)
        except Exception:
            log.exception("%d grants could not be sent", len(parcel.grants))
            return ()  # what is committed is committed: the keeper releases what nobody holds
        return left

    def count(self, result: TurnResult) -> None:
        """Take the committed grants into account before anything else can happen."""
        now = self._desk.clock.monotonic()
        for session in result.doubtful:
            session.in_doubt = True
        for grant in result.grants:
            grant.session.grant(grant.task.token, now)
            if grant.alone:
                grant.session.keep_alone(grant.task.token)
        for pool in self._desk.pools.all() if result.freed else ():
            if pool.id not in result.counted:
                pool.free += pool.freed_of(result.freed)

    def answer(self, items: Sequence[Item], result: TurnResult) -> None:
        """Acknowledge reports, and ask workers to stop what was taken from them."""
        missed = {id(item) for item in result.missed}
        stale = {item.token for item in result.stale}
        tokens: dict[SessionId, list[Token]] = defaultdict(list)
        for item in items:
            if isinstance(item, TaskItem) and item.reporter and id(item) not in missed:
                tokens[item.reporter].append(item.token)
        if self._desk.pools:
            self._answer_over_broker(items, result)
        for session_id, reported in tokens.items():
            session = self._desk.sessions.get(session_id)
            if session is not None:
                session.pending = max(0, session.pending - len(reported))
                late = tuple(token for token in reported if token in stale)
                session.send(Acks(tuple(reported), late))
        self._ask_to_stop(result.revoked)

    def stopped_elsewhere(self, result: TurnResult) -> list[RunId]:
        """Runs whose workers other schedulers must ask to stop."""
        desk = self._desk
        away = {
            token.run_id
            for session_id, token in result.revoked
            if desk.sessions.get(session_id) is None and desk.pools.get(session_id) is None
        }
        return sorted(away)

    def _answer_over_broker(self, items: Sequence[Item], result: TurnResult) -> None:
        passed = {id(item) for item in (*result.missed, *result.unheard)}
        stale = {id(item) for item in result.stale}
        applied = {id(item) for item in result.applied}
        for item in items:
            if not isinstance(item, TaskItem) or id(item) in passed:
                continue
            session = self._desk.pools.get(item.reporter)
            if session is None:
                continue
            draft = self._desk.pools.letters.draft(session.id, session.key.namespace)
            if not isinstance(item.event, Bound):
                draft.acknowledged[item.token] = None
            elif id(item) in applied:
                draft.bound[item.token] = item.number
            elif id(item) in stale:
                draft.stale[item.token] = None

    async def _send_parcels(self) -> None:
        while True:
            parcel = await self._parcels.get()
            try:
                await self._send(parcel)
            except Exception:
                log.exception("%d grants could not be sent", len(parcel.grants))

    async def _send(self, parcel: Parcel) -> None:
        """Send granted tasks to their workers.

        When their inputs cannot be read the grants stay unsent, and are released once the worker
        has not held them for the start bound.
        """
        self._send_out(await self._build(parcel.grants, parcel.known))

    def _send_out(self, built: Sequence[Built]) -> None:
        batches: dict[SessionId, Batches] = defaultdict(lambda: Batches(BATCH_BYTES_MAX))
        now = self._desk.clock.monotonic()
        for grant, assignment in built:
            token, holder = assignment.token, grant.session
            if token not in holder.granted:
                continue  # given up while its inputs were read: somebody else may have it
            size, bytes_max = size_of(assignment), self._bytes_max(holder)
            if size <= bytes_max:
                # The start bound counts from here: reading the inputs may have taken long.
                holder.grant(token, now)
                batches[holder.id].add(assignment, size)
            else:
                holder.over(token)
                self._desk.inbox.put_own([too_large(token, size, bytes_max)])
        for holder_id, cut in batches.items():
            holder_now = self._desk.sessions.get(holder_id) or self._desk.pools.pool(holder_id)
            if holder_now is not None:
                for batch in cut.batches:
                    holder_now.send(messages.Assignments(tuple(batch)))

    def _bytes_max(self, holder: Holder) -> int:
        config = self._desk.config
        in_command = isinstance(holder, Pool)
        return config.broker_command_bytes_max if in_command else config.assignment_bytes_max

    async def _build(self, grants: Sequence[Grant], known: Mapping[TaskKey, bytes]) -> list[Built]:
        for _ in range(READ_TRIES_MAX):
            try:
                return await self.secrets.add_to(await self.assignments.build(grants, known))
            except Unavailable as error:
                log.warning("inputs of %d grants could not be read: %s", len(grants), error)
                await self._desk.clock.sleep(0.1)
        return []

    def _ask_to_stop(self, revoked: Sequence[tuple[SessionId, Token]]) -> None:
        tokens: dict[SessionId, list[Token]] = defaultdict(list)
        for session_id, token in revoked:
            tokens[session_id].append(token)
        for session_id, asked in tokens.items():
            session = self._desk.sessions.get(session_id)
            if session is not None:
                session.send(Cancels(tuple(asked)))
            self._desk.pools.ask_to_stop(session_id, asked)
