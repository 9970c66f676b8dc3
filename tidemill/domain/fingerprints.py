"""Fingerprints of errors: what failed alike has the same one."""

from __future__ import annotations

import hashlib
import re

from tidemill.domain.task_run import TaskError

CHARACTERS_MAX = 200
"""How much of a message counts; what follows is mostly detail."""

DIGITS = 12

# Whatever differs from one failure to the next: quoted texts, ids, addresses, numbers.
_CHANGING = re.compile(
    r"""'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|\b(?:0x)?[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b|\d+""",
    re.IGNORECASE,
)


def fingerprint(error: TaskError | None) -> str:
    """The type of an error and its message without what changes from one failure to the next."""
    kind, message = ("", "") if error is None else (error.type, error.message)
    first = message.strip().partition("\n")[0][:CHARACTERS_MAX]
    # The cut may open a quote that its end would have closed.
    plain = " ".join(_CHANGING.sub("#", first).split())
    return hashlib.sha256(f"{kind}\0{plain}".encode(errors="replace")).hexdigest()[:DIGITS]


__all__ = ["fingerprint"]
