"""Documents with line numbers: values built from a stream of events, JSON's and YAML's alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.domain.problems import Part, show

DOCUMENT_DEPTH_MAX = 64
DOCUMENT_PARTS_MAX = 3_000_000


class Scalar(NamedTuple):
    """A single value."""

    line: int
    value: Any
    anchor: str | None = None
    merges: bool = False  # an unquoted `<<`, which as a key takes over another mapping


class Opening(NamedTuple):
    """The beginning of a mapping or a list."""

    line: int
    is_mapping: bool
    anchor: str | None = None


class Closing(NamedTuple):
    """The end of the innermost mapping or list."""

    line: int


class Alias(NamedTuple):
    """A value that was given before, under an anchor."""

    line: int
    anchor: str


Event: TypeAlias = Scalar | Opening | Closing | Alias


class Marks:
    """The line of a value, and the marks of its parts."""

    __slots__ = ("line", "parts")

    def __init__(self, line: int) -> None:
        self.line = line
        self.parts: dict[Part, Marks] = {}

    def line_of(self, path: Iterable[Part]) -> int:
        """The line of a place, or of the nearest place around it that exists."""
        marks = self
        for part in path:
            if part not in marks.parts:
                break
            marks = marks.parts[part]
        return marks.line


class Document(NamedTuple):
    """A value and the lines that it came from."""

    value: Any
    marks: Marks


def refuse(message: str, code: str, line: int | None = None) -> InvalidWorkflow:
    """The error for a document that cannot be read."""
    return InvalidWorkflow([Problem(path="", message=message, code=code, line=line)])


class _Finished(NamedTuple):
    value: Any
    marks: Marks
    size: int  # parts, each use of an alias counted in full


class _Open(msgspec.Struct):
    """A mapping or list under construction."""

    marks: Marks
    is_mapping: bool
    anchor: str | None
    items: list[Any] = []
    entries: dict[str, Any] = {}
    merged: list[_Finished] = []
    key: Scalar | None = None
    size: int = 1


class DocumentBuilder:
    """Builds a value without recursion; what it refuses names the line."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, _Finished] = {}
        self._root: _Finished | None = None

    def build(self, events: Iterable[Event]) -> Document:
        """The document that the events describe; null when there are none."""
        for event in events:
            self._take(event)
        if self._root is None:
            return Document(None, Marks(1))
        return Document(self._root.value, self._root.marks)

    def _take(self, event: Event) -> None:
        match event:
            case Opening(line, is_mapping, anchor):
                self._begin(line, is_mapping, anchor)
            case Closing():
                self._end()
            case Alias(line, anchor):
                self._reuse(line, anchor)
            case Scalar() if self._awaits_key():
                self._open[-1].key = event
            case Scalar(line, value, anchor):
                self._finish(_Finished(value, Marks(line), 1), anchor)

    def _awaits_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None

    def _begin(self, line: int, is_mapping: bool, anchor: str | None) -> None:
        if self._awaits_key():
            raise refuse("a key must be text, not a list or a mapping", "BAD_KEY", line)
        if len(self._open) >= DOCUMENT_DEPTH_MAX:
            text = f"is nested too deeply, at most {DOCUMENT_DEPTH_MAX} levels are allowed"
            raise refuse(text, "TOO_DEEP", line)
        self._open.append(_Open(Marks(line), is_mapping, anchor))

    def _end(self) -> None:
        done = self._open.pop()
        value = _merged(done) if done.is_mapping else done.items
        self._finish(_Finished(value, done.marks, done.size), done.anchor)

    def _reuse(self, line: int, anchor: str) -> None:
        if self._awaits_key():
            raise refuse("an alias cannot be a key, write the key out", "BAD_KEY", line)
        if anchor not in self._anchors:
            text = f"*{anchor} has no anchor &{anchor} before it that is complete"
            raise refuse(text, "BAD_ALIAS", line)
        self._finish(self._anchors[anchor], None)

    def _finish(self, done: _Finished, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = done
        if not self._open:
            self._root = done
            return
        holder = self._open[-1]
        holder.size += done.size
        if holder.size > DOCUMENT_PARTS_MAX:
            text = f"has more than {DOCUMENT_PARTS_MAX:,} parts with its aliases written out"
            raise refuse(text, "TOO_LARGE", done.marks.line)
        if holder.is_mapping:
            self._enter(holder, done)
        else:
            holder.marks.parts[len(holder.items)] = done.marks
            holder.items.append(done.value)

    def _enter(self, holder: _Open, done: _Finished) -> None:
        key = holder.key
        assert key is not None, "a value in a mapping follows its key"
        holder.key = None
        if key.merges:
            holder.merged.extend(_mappings_to_merge(done, key.line))
            return
        name = key_text(key)
        if name in holder.entries:
            first = holder.marks.parts[name].line
            text = f"the key {show(name)} is given twice, first in line {first}"
            raise refuse(text, "DUPLICATE_KEY", key.line)
        holder.entries[name] = done.value
        marks = Marks(key.line)  # people look for a field where its name is
        marks.parts = done.marks.parts
        holder.marks.parts[name] = marks


def key_text(key: Scalar) -> str:
    """The key of a mapping, which must be text."""
    if not isinstance(key.value, str):
        shown = show(key.value)
        raise refuse(f"the key {shown} is not text, put it in quotes", "BAD_KEY", key.line)
    return key.value


def _mappings_to_merge(done: _Finished, line: int) -> list[_Finished]:
    if isinstance(done.value, dict):
        return [done]
    if isinstance(done.value, list) and all(isinstance(item, dict) for item in done.value):
        marks = done.marks.parts
        return [_Finished(item, marks[index], 1) for index, item in enumerate(done.value)]
    raise refuse("<< takes a mapping or a list of mappings", "BAD_ALIAS", line)


def _merged(done: _Open) -> dict[str, Any]:
    """What a mapping says itself wins over what it takes over, and earlier over later."""
    for source in done.merged:
        for name, value in source.value.items():
            if name not in done.entries:
                done.entries[name] = value
                done.marks.parts[name] = source.marks.parts[name]
    return done.entries


__all__ = [
    "Alias",
    "Closing",
    "Document",
    "DocumentBuilder",
    "Event",
    "Marks",
    "Opening",
    "Scalar",
    "refuse",
]
