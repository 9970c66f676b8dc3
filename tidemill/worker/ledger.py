"""What a worker still owes the scheduler: outcomes, kept until they are acknowledged."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.identifiers import Token
from tidemill.protocol.messages import Outcome

_OVERHEAD_BYTES = 128  # of an outcome besides what the user made


class Ledger:
    """Outcomes in the order in which they came to be, each sent once per stream."""

    def __init__(self, *, outcomes_max: int, bytes_max: int) -> None:
        self._outcomes_max = outcomes_max
        self._bytes_max = bytes_max
        self._kept: dict[Token, Outcome] = {}
        self._unsent: dict[Token, Outcome] = {}

    def __contains__(self, token: Token) -> bool:
        return token in self._kept

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Grants whose outcome is not acknowledged."""
        return tuple(self._kept)

    @property
    def unsent(self) -> int:
        """How many outcomes this stream has not carried yet."""
        return len(self._unsent)

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome until it is acknowledged."""
        self._kept[outcome.token] = outcome
        self._unsent[outcome.token] = outcome

    def forget(self, tokens: Iterable[Token]) -> None:
        """These are acknowledged, or nobody wants them any more."""
        for token in tokens:
            self._kept.pop(token, None)
            self._unsent.pop(token, None)

    def start_over(self) -> None:
        """A new stream begins: nothing that is kept has been sent on it."""
        self._unsent = dict(self._kept)

    def say_again(self, tokens: Iterable[Token]) -> None:
        """These were sent, and nobody has acknowledged them."""
        self._unsent |= {token: self._kept[token] for token in tokens if token in self._kept}

    def take(self) -> tuple[Outcome, ...]:
        """The next outcomes to send: as many as one message may hold, at least one if any."""
        taken: list[Outcome] = []
        size = 0
        for outcome in self._unsent.values():
            size += _size(outcome)
            if taken and (size > self._bytes_max or len(taken) >= self._outcomes_max):
                break
            taken.append(outcome)
        for outcome in taken:
            del self._unsent[outcome.token]
        return tuple(taken)


def _size(outcome: Outcome) -> int:
    report = outcome.report
    if isinstance(report, Succeeded):
        return _OVERHEAD_BYTES + len(report.result or b"")
    if isinstance(report, Failed):
        # Four bytes is the most that a character takes on the wire.
        return _OVERHEAD_BYTES + 4 * (len(report.error.message) + len(report.error.traceback))
    return _OVERHEAD_BYTES
