"""What waits to be sent over the broker: commands one by one, answers gathered per worker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidemill.domain.identifiers import SessionId, Token
from tidemill.protocol.broker_door import Letter
from tidemill.protocol.broker_messages import ANSWERS, TOKENS_MAX, Answer, BoundData, tokens_to

DRAFTS_MAX = 20_000
"""Workers to be answered, while nothing can be sent; the others ask again."""


@dataclass(slots=True)
class Draft:
    """What one worker is to be told."""

    namespace: str
    welcome: bool = False
    closed: bool = False
    refused: str | None = None
    bound: dict[Token, int] = field(default_factory=dict)  # and what `started` is answered
    stale: dict[Token, None] = field(default_factory=dict)
    acknowledged: dict[Token, None] = field(default_factory=dict)
    cancel: dict[Token, None] = field(default_factory=dict)


class Letters:
    """Bounded: commands beyond it are not sent, and go back once the pool's time is over."""

    def __init__(self, scheduler: str, commands_max: int) -> None:
        self._scheduler = scheduler
        self._commands: deque[Letter] = deque(maxlen=commands_max)
        self._drafts: dict[SessionId, Draft] = {}
        self._stirred = asyncio.Event()
        self._number = 0

    @property
    def waiting(self) -> bool:
        """Whether something is to be sent."""
        return bool(self._commands or self._drafts)

    def put(self, letter: Letter) -> None:
        """Have a command sent."""
        self._commands.append(letter)
        self._stirred.set()

    def draft(self, session_id: SessionId, namespace: str) -> Draft:
        """The next answer to a worker, to add to."""
        self._stirred.set()
        if len(self._drafts) >= DRAFTS_MAX and session_id not in self._drafts:
            del self._drafts[next(iter(self._drafts))]
        return self._drafts.setdefault(session_id, Draft(namespace))

    async def take(self) -> list[Letter]:
        """Wait until there is something to send."""
        while not self._commands and not self._drafts:
            self._stirred.clear()
            await self._stirred.wait()
        drafts, self._drafts = self._drafts, {}
        answers = [self._answer(session_id, draft) for session_id, draft in drafts.items()]
        commands = list(self._commands)
        self._commands.clear()
        return [*answers, *commands]

    def _answer(self, session_id: SessionId, draft: Draft) -> Letter:
        self._number += 1
        answer = Answer(
            session=session_id,
            namespace=draft.namespace,
            scheduler=self._scheduler,
            number=self._number,
            welcome=draft.welcome,
            bound=tuple(BoundData(*token, draft.bound[token]) for token in _some(draft.bound)),
            stale=tokens_to(_some(draft.stale)),
            acknowledged=tokens_to(_some(draft.acknowledged)),
            cancel=tokens_to(_some(draft.cancel)),
            closed=draft.closed,
            refused=draft.refused,
        )
        return Letter(ANSWERS, session_id, answer)


def _some(tokens: Iterable[Token]) -> list[Token]:
    """As many as one message may hold; the worker asks again for the others."""
    return list(tokens)[: TOKENS_MAX // 8]
