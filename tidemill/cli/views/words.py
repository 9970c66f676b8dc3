"""States and reasons in the words of a person who did not write the engine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tidemill.cli.views.text import plural
from tidemill.domain.task_run import Reason

_REASONS: Mapping[str, str] = {
    Reason.EXHAUSTED: "retries exhausted",
    Reason.FINAL_ERROR: "an error that no retry can mend",
    Reason.FAILED: "failed",
    Reason.TIMEOUT: "took too long",
    Reason.LOST: "its worker was lost",
    Reason.RELEASED: "handed back",
    Reason.CANCELLED: "cancelled",
    Reason.TASK_FAILED: "a task failed",
}


def because(reason: str | None) -> str:
    """Why something ended, as facts and rows have it; a newer server may know more reasons."""
    if reason is None:
        return "no reason given"
    return _REASONS.get(reason, reason.replace("_", " "))


def ending(state: StrEnum, reason: str | None) -> str:
    """A state, and why, unless the state says it already."""
    if reason is None or reason.upper() == state:
        return str(state)
    return f"{state}: {because(reason)}"


def after_attempts(begun: int) -> str:
    """How often a task was tried before it ended."""
    return f"after {plural(begun, 'attempt')}" if begun else "before its first attempt"
