"""Submissions: starts that come at the same time share a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice

from tidemill.domain.errors import TidemillError
from tidemill.engine.gathering import Gatherer
from tidemill.engine.preparing import COMMIT_ROWS_MAX, ShapeCache, Start, StartRequest, prepare
from tidemill.engine.starting import Outcome, Started, commit
from tidemill.ports.bus import Bus
from tidemill.ports.entropy import Entropy
from tidemill.ports.store import Store

COMMITS_AT_ONCE = 2
"""While one waits for the database, the other is made ready."""

WAITING_MAX = 20_000
CHUNK_REQUESTS = 1_000
"""How many requests of one caller wait at once: others get their turn in between."""


class Submissions:
    """Starts runs for many callers; each is answered after the commit that its run is in."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        entropy: Entropy,
        *,
        waiting_max: int = WAITING_MAX,
        commits_at_once: int = COMMITS_AT_ONCE,
    ) -> None:
        self._store = store
        self._bus = bus
        self._entropy = entropy
        self._shapes = ShapeCache()
        self._gatherer: Gatherer[Start, Started] = Gatherer(
            self._commit,
            batch_max=COMMIT_ROWS_MAX,
            waiting_max=waiting_max,
            at_once=commits_at_once,
            weigh=lambda start: start.rows,
        )

    async def submit(self, request: StartRequest) -> Started:
        """Start one run, or find the one that its key has started.

        InvalidInput when input or key do not fit, Conflict when the key was used otherwise,
        Unavailable with the code OVERLOADED when too many wait.
        """
        return await self._gatherer.put(prepare(request, self._entropy, self._shapes))

    async def submit_many(self, requests: Sequence[StartRequest]) -> list[Outcome]:
        """The same for many: what was refused is told in its place, and holds nobody up."""
        outcomes: list[Outcome] = []
        rest = iter(requests)
        while chunk := list(islice(rest, CHUNK_REQUESTS)):
            answers = [self._put(request) for request in chunk]
            under_way = [answer for answer in answers if isinstance(answer, asyncio.Future)]
            if under_way:
                await asyncio.wait(under_way)
            outcomes += [_outcome(answer) for answer in answers]
        return outcomes

    async def close(self) -> None:
        """Take no more, and see those that wait to their commit; safe to call twice."""
        await self._gatherer.close()

    def _put(self, request: StartRequest) -> asyncio.Future[Started] | TidemillError:
        try:
            return self._gatherer.put(prepare(request, self._entropy, self._shapes))
        except TidemillError as error:
            return error

    async def _commit(self, batch: Sequence[Start]) -> list[Outcome]:
        committed = await commit(self._store, batch)
        await self._bus.send_hint(committed.hint)
        return committed.outcomes


def _outcome(answer: asyncio.Future[Started] | TidemillError) -> Outcome:
    if isinstance(answer, TidemillError):
        return answer
    error = answer.exception()
    if isinstance(error, TidemillError):
        return error
    return answer.result()
