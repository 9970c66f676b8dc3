"""Problems on their way to a person: gathered up to a bound, with paths and suggestions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import msgspec

from tidemill.domain.errors import Problem

PROBLEMS_MAX = 100
SHOWN_CHARACTERS_MAX = 60
CANDIDATES_MAX = 500

Part: TypeAlias = str | int

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_PART = re.compile(r'\.?([A-Za-z_$][A-Za-z0-9_$-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


class ProblemList:
    """Gathers problems, keeps the first ones, and counts the rest."""

    def __init__(self, limit: int = PROBLEMS_MAX) -> None:
        self._limit = limit
        self._kept: list[Problem] = []
        self._total = 0

    def __len__(self) -> int:
        return self._total

    @property
    def full(self) -> bool:
        """Whether further problems are only counted, so that nobody needs to word them well."""
        return len(self._kept) >= self._limit

    def add(self, problem: Problem) -> None:
        """Take one problem."""
        self._total += 1
        if not self.full:
            self._kept.append(problem)

    def extend(self, problems: Iterable[Problem]) -> None:
        """Take several problems."""
        for problem in problems:
            self.add(problem)

    def paths(self) -> frozenset[str]:
        """The places at which something is wrong so far."""
        return frozenset(problem.path for problem in self._kept)

    def all(self) -> tuple[Problem, ...]:
        """What was kept, and a last line that counts what was not."""
        hidden = self._total - len(self._kept)
        if not hidden:
            return tuple(self._kept)
        more = Problem(path="", message=f"and {hidden:,} more problems", code="MORE_PROBLEMS")
        return (*self._kept, more)


def format_path(parts: Sequence[Part]) -> str:
    """A place in a document as text: `tasks[3].inputs.order.result`."""
    return "".join(_format_part(part) for part in parts).removeprefix(".")


def parse_path(path: str) -> tuple[Part, ...]:
    """Read back what `format_path` wrote."""
    parts: list[Part] = []
    for name, index, quoted in _PART.findall(path):
        if name:
            parts.append(name)
        else:
            parts.append(int(index) if index else msgspec.json.decode(quoted, type=str))
    return tuple(parts)


def show(value: Any) -> str:
    """A value as JSON, shortened for a message."""
    text = msgspec.json.encode(value).decode()
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return text
    return text[:SHOWN_CHARACTERS_MAX] + "…"


def did_you_mean(word: str, candidates: Collection[str]) -> str:
    """A suggestion to append to a message; empty when nothing is close."""
    # Comparing is slow, so only words of about the same length are compared, and not too many.
    near = [each for each in candidates if abs(len(each) - len(word)) <= 3][:CANDIDATES_MAX]
    by_fold = {each.lower(): each for each in near}
    matches = get_close_matches(word.lower(), by_fold, n=1, cutoff=0.65)
    return f", did you mean {show(by_fold[matches[0]])}?" if matches else ""


def listed(words: Sequence[str], joint: str = "or") -> str:
    """Words as a sentence has them: `a, b or c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def _format_part(part: Part) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if _PLAIN.fullmatch(part):
        return f".{part}"
    return f"[{msgspec.json.encode(part).decode()}]"


__all__ = [
    "Part",
    "ProblemList",
    "did_you_mean",
    "format_path",
    "listed",
    "parse_path",
    "show",
]
