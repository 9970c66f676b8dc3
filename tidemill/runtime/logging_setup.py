"""Logs of a role: one line each to standard error, with a level that systemd understands."""

from __future__ import annotations

import logging
import os
import sys

from tidemill.ports.clock import Clock

LINE_CHARACTERS_MAX = 2_000
REPEAT_SECONDS = 30.0
REMEMBERED_MAX = 200
JOURNAL = "JOURNAL_STREAM"  # set by systemd, which writes the time by itself

_PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}


def log_to_stderr(level: str, clock: Clock) -> None:
    """Send what Tidemill logs from `level` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(journal=JOURNAL in os.environ))
    handler.addFilter(SaidBefore(clock))
    logger = logging.getLogger("tidemill")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False


class OneLine(logging.Formatter):
    """Time, level, text; a traceback shrinks to its last words unless everything is wanted."""

    def __init__(self, *, journal: bool) -> None:
        super().__init__()
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the message holds."""
        text = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
        line = " ".join(text.split())[:LINE_CHARACTERS_MAX]
        if self._journal:
            return f"<{_PRIORITIES.get(record.levelname, 6)}>{line}"
        return f"{self.formatTime(record)} {record.levelname.lower()} {line}"


class SaidBefore(logging.Filter):
    """Lets the same line through once in a while only: a server that is away is no news."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is news."""
        now, text = self._clock.monotonic(), record.getMessage()
        if now - self._said.get(text, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return False
        while len(self._said) >= REMEMBERED_MAX:
            del self._said[next(iter(self._said))]
        self._said[text] = now
        return True
