"""Progress and text of running attempts, gathered from any thread until the next message."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from tidemill.domain.identifiers import Token
from tidemill.protocol.messages import Logs, LogText, Progress, ProgressReport

PENDING_CHARACTERS_MAX = 1024 * 1024
LOGS_CHARACTERS_MAX = 256 * 1024  # of one message: at most 1 MiB on the wire
MESSAGE_CHARACTERS_MAX = 500


class Output:
    """Bounded: of an attempt that writes faster than it is sent, the latest text is kept."""

    def __init__(self, characters_max: int) -> None:
        self.on_first: Callable[[], None] = _nothing
        self._characters_max = characters_max
        self._lock = threading.Lock()
        self._texts: dict[Token, _Tail] = {}
        self._progress: dict[Token, ProgressReport] = {}
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._texts or self._progress)

    def write(self, token: Token, text: str) -> None:
        """Add some text of an attempt."""
        if not text:
            return
        with self._lock:
            first = not self
            tail = self._texts.setdefault(token, _Tail())
            self._size += tail.add(text, self._limit(tail))
        if first:
            self.on_first()

    def report(self, token: Token, fraction: float, message: str) -> None:
        """Replace the progress of an attempt."""
        with self._lock:
            first = not self
            words = clean_text(message[:MESSAGE_CHARACTERS_MAX])
            self._progress[token] = ProgressReport(token, fraction, words)
        if first:
            self.on_first()

    def drop_progress(self, tokens: Iterable[Token]) -> None:
        """Nobody wants to hear how far these are any more."""
        with self._lock:
            for token in tokens:
                self._progress.pop(token, None)

    def take(self) -> tuple[Logs | Progress, ...]:
        """Everything gathered so far, as messages."""
        with self._lock:
            texts, self._texts, self._size = self._texts, {}, 0
            progress, self._progress = self._progress, {}
        logs = _split([LogText(token, tail.text(), tail.dropped) for token, tail in texts.items()])
        return (*logs, Progress(tuple(progress.values()))) if progress else logs

    def _limit(self, tail: _Tail) -> int:
        left = PENDING_CHARACTERS_MAX - self._size + tail.size
        return max(1_024, min(self._characters_max, left))


class _Tail:
    """The last characters of a text that may be endless."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[str] = []
        self.dropped = 0  # bytes

    def add(self, text: str, size_max: int) -> int:
        """Append, cut at the front where needed, and return how much larger it has become."""
        before = self.size
        self._parts.append(text)
        self.size += len(text)
        # Twice the bound before cutting: otherwise every short line would copy the whole text.
        if self.size > 2 * size_max or len(text) > size_max:
            self._cut(size_max)
        return self.size - before

    def _cut(self, size_max: int) -> None:
        whole = "".join(self._parts)
        self.dropped += len(whole[:-size_max].encode(errors="replace"))
        self._parts = [whole[-size_max:]]
        self.size = size_max

    def text(self) -> str:
        """What is kept."""
        return clean_text("".join(self._parts))


def _split(chunks: list[LogText]) -> tuple[Logs, ...]:
    messages: list[list[LogText]] = []
    size = 0
    for chunk in chunks:
        if not messages or size + len(chunk.text) > LOGS_CHARACTERS_MAX:
            messages.append([])
            size = 0
        messages[-1].append(chunk)
        size += len(chunk.text)
    return tuple(Logs(tuple(message)) for message in messages)


def clean_text(text: str) -> str:
    """The same text without what no store and no wire can carry: lone surrogates and NUL."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _nothing() -> None:
    """Until somebody wants to know."""
