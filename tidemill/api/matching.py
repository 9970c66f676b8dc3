"""From a path to its endpoints: a tree of segments, in which only declared endpoints can stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from tidemill.api.routing import Endpoint

ANY = "{}"
PATH_BYTES_MAX = 8_192


class Match(NamedTuple):
    """The endpoints of a path by method, and the texts in place of its parameters."""

    endpoints: Mapping[str, Endpoint]
    values: tuple[str, ...]


class _Node:
    __slots__ = ("below", "here")

    def __init__(self) -> None:
        self.here: dict[str, Endpoint] = {}
        self.below: dict[str, _Node] = {}


class Table:
    """Finds the endpoints of a path; a plain word goes before a parameter."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._root = _Node()
        self._plain: dict[bytes, Match] = {}
        for one in self.endpoints:
            self._add(one)

    def match(self, raw_path: bytes) -> Match | None:
        """The endpoints of a path as it stands in the request line; None when there are none."""
        found = self._plain.get(raw_path)
        if found is not None:
            return found
        if len(raw_path) > PATH_BYTES_MAX or not raw_path.startswith(b"/"):
            return None
        if b"%00" in raw_path:  # in no name, and some stores choke on it
            return None
        try:
            # Segment by segment, so that a %2F in one is part of it.
            texts = [unquote(part, errors="strict") for part in raw_path.decode("ascii").split("/")]
        except UnicodeDecodeError:
            return None
        return _find(self._root, texts[1:], ())

    def _add(self, one: Endpoint) -> None:
        node = self._root
        for segment in one.segments:
            node = node.below.setdefault(ANY if segment.startswith("{") else segment, _Node())
        if one.method in node.here:
            raise TypeError(f"{one.method} {one.path} is declared twice")
        node.here[one.method] = one
        if not one.parameters:
            self._plain[one.path.encode()] = Match(node.here, ())


def _find(node: _Node, texts: list[str], values: tuple[str, ...]) -> Match | None:
    if not texts:
        return Match(node.here, values) if node.here else None
    first, rest = texts[0], texts[1:]
    plain = node.below.get(first) if first != ANY else None
    found = _find(plain, rest, values) if plain is not None else None
    if found is None and first and (other := node.below.get(ANY)) is not None:
        found = _find(other, rest, (*values, first))
    return found
