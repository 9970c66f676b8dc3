"""What the engine logs while a command runs: warnings reach the person, in the view's own way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidemill.cli.views.text import first_line


class _Teller(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one line; the traceback of a logged exception shrinks to its last words."""
        text = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
        self._tell(first_line(text, 300))


@contextmanager
def warnings_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Hand warnings of Tidemill's loggers to `tell` while the block lasts."""
    logger = logging.getLogger("tidemill")
    teller = _Teller(tell)
    logger.addHandler(teller)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(teller)
