"""Messages folded into notifications of PostgreSQL, which hold less than 8,000 bytes each.

Small messages travel together, one a line. A large one is cut: its parts begin with `2/5 `, are
sent in one transaction and so arrive one after the other, unless the listener came in between. All
of it is ASCII, whatever the encoding of the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import msgspec

from tidemill.buses.mailbox import Mailbox
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.ports.broker import Message

PAYLOAD_CHARACTERS_MAX = 7_900
PARTS_MAX = 2_000

_PART = re.compile(r"(\d{1,4})/(\d{1,4}) ")
_PART_HEAD_CHARACTERS = 10


def fold(messages: Sequence[bytes]) -> Iterator[str]:
    """Payloads that hold these JSON messages, in order."""
    lines: list[str] = []
    length = 0
    for message in messages:
        line = _ascii(message)
        if lines and length + len(line) >= PAYLOAD_CHARACTERS_MAX:
            yield "\n".join(lines)
            lines, length = [], 0
        if len(line) > PAYLOAD_CHARACTERS_MAX:
            yield from _cut(line)
        else:
            lines.append(line)
            length += len(line) + 1
    if lines:
        yield "\n".join(lines)


class Unfolding:
    """Puts messages back together, into a mailbox; half of a message is dropped."""

    def __init__(self, mailbox: Mailbox[Message]) -> None:
        self._mailbox = mailbox
        self._parts: list[str] = []

    def hear(self, payload: str) -> None:
        """Take one payload, in the order of arrival."""
        part = _PART.match(payload)
        if part is None:
            for line in payload.split("\n"):
                self._mailbox.put(Message(value=line.encode()))
            return
        number, total = int(part[1]), int(part[2])
        if number == 1:
            self._parts = []
        if number == len(self._parts) + 1 <= PARTS_MAX:
            self._parts.append(payload[part.end() :])
        if number == total == len(self._parts):
            self._mailbox.put(Message(value="".join(self._parts).encode()))
            self._parts = []


def _ascii(message: bytes) -> str:
    if message.isascii():
        return message.decode("ascii")
    return json.dumps(msgspec.json.decode(message), separators=(",", ":"))


def _cut(line: str) -> Iterator[str]:
    size = PAYLOAD_CHARACTERS_MAX - _PART_HEAD_CHARACTERS
    total = -(-len(line) // size)
    if total > PARTS_MAX:
        message = f"a message of {len(line)} characters is too large for PostgreSQL's notifications"
        raise InvalidInput([Problem(path="bus", message=message, code="size")])
    for number in range(total):
        yield f"{number + 1}/{total} {line[number * size : (number + 1) * size]}"
