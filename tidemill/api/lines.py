"""Lines of a body as they come in, piece by piece, each within a bound."""

from __future__ import annotations

from tidemill.protocol.resources.bulk import LINE_BYTES_MAX


class TooLong(Exception):
    """Stands for a line that is longer than the bound, and was not kept."""


class LineReader:
    """Cuts pieces into lines; never holds more than a line and a piece."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._skipping = False

    def feed(self, piece: bytes) -> list[bytes | TooLong]:
        """The lines that this piece completes, without empty ones."""
        found: list[bytes | TooLong] = []
        self._rest += piece
        if b"\n" in piece:  # looked for in what is new: a long line in small pieces stays cheap
            *whole, last = bytes(self._rest).split(b"\n")
            self._rest = bytearray(last)
            for line in whole:
                found += self._line(line)
        if len(self._rest) > self._bytes_max:
            # Told once, and dropped as it comes: what it is does not matter any more.
            found += [] if self._skipping else [TooLong()]
            self._skipping = True
            self._rest.clear()
        return found

    def end(self) -> list[bytes | TooLong]:
        """The last line, if the body does not end with a line break."""
        rest, self._rest = bytes(self._rest), bytearray()
        return self._line(rest)

    def _line(self, line: bytes) -> list[bytes | TooLong]:
        if self._skipping:
            self._skipping = False
            return []
        if len(line) > self._bytes_max:
            return [TooLong()]
        stripped = line.strip()
        return [stripped] if stripped else []


__all__ = ["LineReader", "TooLong"]
