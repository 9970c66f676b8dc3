"""Masking: secret values are taken out of whatever a task says, in the forms they usually take.

Plain, in base64 (also in the middle of something longer), url-encoded, as JSON writes it, and the
single lines of what has several. Values of less than four characters are no secrets and are left.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

MASK = "***"
VALUE_CHARACTERS_MIN = 4
LINE_CHARACTERS_MIN = 8
PIECE_CHARACTERS_MIN = 6
_GLANCE = 8  # characters that are compared before the rest is
_NOTHING = re.compile("(?!)")


class Masking:
    """Masks the values that were added, also where they come in pieces, one after the other."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: tuple[str, ...] = ()  # the longest first
        self._pattern = _NOTHING
        self._held = ""
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def add(self, value: str) -> None:
        """Mask this one too from now on."""
        forms = {*self._forms, *_forms(value)}
        if len(forms) > len(self._forms):
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
            self._pattern = re.compile("|".join(map(re.escape, self._forms)))

    def feed(self, text: str) -> str:
        """The next piece of a text, masked; what may be the beginning of a value is held back."""
        if not self._forms:
            return text
        text, self._held = self._held + text, ""
        shown: list[str] = []
        place = 0
        while True:
            found = self._pattern.search(text, place)
            begun = self._begun_at(text, place)
            if found is None or found.start() >= begun:
                break
            shown += [text[place : found.start()], MASK]
            place = found.end()
        self._held = text[begun:]
        return "".join([*shown, text[place:begun]])

    def flush(self) -> str:
        """What is held back: nothing follows any more."""
        held, self._held = self._held, ""
        return self.mask(held)

    def mask(self, text: str) -> str:
        """A whole text, masked; also pieces of values at its ends, where it may have been cut."""
        if not self._forms or not text:
            return text
        text = self._pattern.sub(MASK, text)
        for form in self._forms:
            text = _without_ends(text, form)
        return text

    def mask_json(self, data: bytes) -> bytes:
        """A JSON document, in which every text and number that shows a value is masked."""
        text = data.decode("utf-8", "replace")
        if not self._forms or self._pattern.search(text) is None:
            return data
        return msgspec.json.encode(self._masked(msgspec.json.decode(data)))

    def _masked(self, value: Any) -> Any:
        match value:
            case str():
                return self._pattern.sub(MASK, value)
            case list():
                return [self._masked(one) for one in value]
            case dict():
                return {self._masked(key): self._masked(one) for key, one in value.items()}
            case bool() | None:
                return value
            case _:
                return MASK if self._pattern.search(str(value)) else value

    def _begun_at(self, text: str, place: int) -> int:
        """Where a value may have begun that is not complete yet; the end when none has."""
        nearest = max(place, len(text) - len(self._forms[0]) + 1)
        for start in range(nearest, len(text)):
            if any(_begins(form, text, start) for form in self._forms):
                return start
        return len(text)


def _begins(form: str, text: str, start: int) -> bool:
    """Whether the rest of a text is a beginning of the form, and not the whole of it."""
    length = len(text) - start
    if length >= len(form) or not text.startswith(form[: min(length, _GLANCE)], start):
        return False
    return text.endswith(form[:length])


def _forms(value: str) -> Iterator[str]:
    if len(value) < VALUE_CHARACTERS_MIN:
        return
    yield value
    yield quote(value, safe="")
    yield quote(value)
    yield quote_plus(value)
    yield msgspec.json.encode(value).decode()[1:-1]
    yield value.encode("unicode_escape").decode()
    yield from _base64_forms(value.encode("utf-8", "replace"))
    lines = [line.strip() for line in value.splitlines()] if "\n" in value else []
    yield from (line for line in lines if len(line) >= LINE_CHARACTERS_MIN)


def _base64_forms(data: bytes) -> Iterator[str]:
    """As it looks wherever it stands in something that was encoded."""
    for shift in range(3):
        padded = b"\0" * shift + data
        start, end = (shift * 8 + 5) // 6, len(padded) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            piece = encode(padded).decode()[start:end]
            if len(piece) >= PIECE_CHARACTERS_MIN:
                yield piece


def _without_ends(text: str, form: str) -> str:
    """The text without the last piece of a form at its beginning, or the first one at its end."""
    text = _without_end(text[::-1], form[::-1])[::-1]
    return _without_end(text, form)


def _without_end(text: str, form: str) -> str:
    last = len(text) - VALUE_CHARACTERS_MIN
    for start in range(max(0, len(text) - len(form) + 1), last + 1):
        if _begins(form, text, start):
            return text[:start] + MASK
    return text
