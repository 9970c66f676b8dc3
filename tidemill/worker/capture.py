"""What tasks print and log goes to their attempt; what the worker itself says stays on stderr."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from tidemill.sdk.context import ContextHandler, current_context


class RoutedStream(io.TextIOBase):
    """Stands in for sys.stdout: each line goes to the task whose code writes it.

    Context variables say which task that is. A thread that user code starts on its own has none,
    so what it prints goes to the worker's own output.
    """

    def __init__(self, otherwise: TextIO) -> None:
        self._otherwise = otherwise

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the real stream."""
        return self._otherwise.encoding

    @property
    def buffer(self) -> Any:
        """Bytes cannot be routed: they go to the real stream."""
        return self._otherwise.buffer

    def write(self, text: str) -> int:
        """Hand the text to the running task, or to the real stream."""
        current = current_context()
        if current is None:
            return self._otherwise.write(text)
        current.voice.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        """Write all of them."""
        self.write("".join(lines))

    def flush(self) -> None:
        """Flush the real stream; tasks' text is sent by itself."""
        self._otherwise.flush()

    def fileno(self) -> int:
        """That of the real stream."""
        return self._otherwise.fileno()

    def isatty(self) -> bool:
        """Never: colours and progress bars are for people."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True


def capture_output() -> None:
    """Route everything that is printed or logged in this process from now on."""
    log_to_tasks(ContextHandler(otherwise=_stderr_handler(sys.stderr)))
    sys.stdout = RoutedStream(sys.stdout)
    sys.stderr = RoutedStream(sys.stderr)


def log_to_tasks(handler: ContextHandler) -> None:
    """Keep what user code logs, by whatever logger, from INFO on."""
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _stderr_handler(stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler
