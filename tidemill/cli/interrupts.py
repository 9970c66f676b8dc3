"""Ctrl-C: the first one asks, the second one insists."""

from __future__ import annotations

import asyncio
import signal
from types import TracebackType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Turns signals into two events, while the block lasts."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self.exit_code = 128 + signal.SIGINT

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._hear, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    @property
    def again(self) -> str:
        """How the sender of the first signal is told to insist."""
        by_hand = self.exit_code == 128 + signal.SIGINT
        return "Ctrl-C again stops" if by_hand else "a second signal stops"

    def _hear(self, number: signal.Signals) -> None:
        if not self.first.is_set():
            self.exit_code = 128 + number
            self.first.set()
        else:
            self.second.set()
