"""The slots of a worker: how much it can run at once, and how much of that is stuck."""

from __future__ import annotations

from tidemill.domain.identifiers import Token


class Slots:
    """Counts slots. One whose code did not stop in time stays taken until the code really ends:
    a thread cannot be killed, and pretending it were gone would overload the machine."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.closed = False
        self._busy: set[Token] = set()
        self._stuck: set[Token] = set()

    @property
    def usable(self) -> int:
        """Slots that a scheduler may count on; 0 when the worker drains."""
        return 0 if self.closed else self.total - len(self._stuck)

    @property
    def free(self) -> int:
        """Slots that could take a task right now."""
        return max(0, self.usable - len(self._busy))

    @property
    def stuck(self) -> int:
        """Slots that code past its end still occupies."""
        return len(self._stuck)

    @property
    def worn_out(self) -> bool:
        """Whether a quarter of the slots are stuck: the process should be replaced."""
        return bool(self._stuck) and len(self._stuck) * 4 >= self.total

    def take(self, token: Token) -> None:
        """Occupy a slot."""
        assert token not in self._busy, "a grant runs once"
        assert self.free > 0, "whoever starts work looks for a free slot first"
        self._busy.add(token)

    def mark_stuck(self, token: Token) -> None:
        """The grant is over, its code is not."""
        self._busy.remove(token)
        self._stuck.add(token)

    def give_back(self, token: Token) -> None:
        """The code has really ended."""
        self._busy.discard(token)
        self._stuck.discard(token)
