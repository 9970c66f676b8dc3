"""Slugs: names made from whatever people call things."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable

from tidemill.domain.workflow import NAME_CHARACTERS_MAX, NAME_PATTERN

_NAME = re.compile(NAME_PATTERN)
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
_LOOK_ALIKE = str.maketrans("_.", "--")
SUFFIX_CHARACTERS = 8
"""Room for a number at the end of a slug that is taken."""


def is_name(text: str) -> bool:
    """Whether a text can be the name of a workflow or the id of a task as it is."""
    return len(text) <= NAME_CHARACTERS_MAX and _NAME.fullmatch(text) is not None


def slug(text: str, fallback: str = "task") -> str:
    """The text itself if it is a name, else a name that reads like it."""
    if is_name(text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = _FOREIGN.sub("-", plain).strip("._-")
    return words[: NAME_CHARACTERS_MAX - SUFFIX_CHARACTERS].rstrip("._-") or fallback


def fold(name: str) -> str:
    """What two names must differ in: more than case and '-', '_', '.'."""
    return name.lower().translate(_LOOK_ALIKE)


def slugs(texts: Iterable[str], fallback: str = "task", taken: Collection[str] = ()) -> list[str]:
    """A slug for each text, no two alike, in order; numbers tell apart what would be."""
    used = {fold(name) for name in taken}
    counts: dict[str, int] = {}
    found: list[str] = []
    for text in texts:
        name = plain = slug(text, fallback)
        while fold(name) in used:
            counts[plain] = counts.get(plain, 1) + 1
            short = plain[: NAME_CHARACTERS_MAX - SUFFIX_CHARACTERS]
            name = f"{short}-{counts[plain]}"
        used.add(fold(name))
        found.append(name)
    return found


__all__ = ["fold", "is_name", "slug", "slugs"]
