"""The error tree. Callers catch classes, never texts.

TidemillError
├── InvalidInput            what a person or program sent is wrong; every problem at once
│   └── InvalidWorkflow     a definition is wrong
├── Unauthenticated         nobody knows who asks
├── Forbidden               who asks may not do this
├── NotFound                the thing named does not exist
├── RateLimited             too many requests: wait
├── Conflict                the request contradicts what is stored
│   └── StoreOwned          another process owns the SQLite file
├── IllegalTransition       a state machine was asked for a move that it does not have
├── MalformedRun            stored data of one run cannot be read: the run is quarantined
└── Unavailable             try again: a deadlock, a lost connection, a busy or full disk
    └── CommitUnknown       the commit may or may not have happened
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with an input: where it is, what it is, and how to mend it."""

    path: str
    message: str
    code: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line is not None else ""
        return f"{place}{self.path}: {self.message}" if self.path else f"{place}{self.message}"


class TidemillError(Exception):
    """Anything that Tidemill itself refuses or reports; programs tell errors apart by `code`."""

    code = "ERROR"

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class InvalidInput(TidemillError):
    """Input that is refused, with every problem found in it."""

    code = "INVALID"

    def __init__(self, problems: Sequence[Problem]) -> None:
        assert problems, "an invalid input has at least one problem"
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class InvalidWorkflow(InvalidInput):
    """A workflow definition that is refused; `source` is the file it was read from, if any."""

    def __init__(self, problems: Sequence[Problem], *, source: str = "") -> None:
        super().__init__(problems)
        self.source = source


class Unauthenticated(TidemillError):
    """No credentials, or none that hold."""

    code = "UNAUTHENTICATED"


class Forbidden(TidemillError):
    """Known, but not allowed."""

    code = "FORBIDDEN"


class NotFound(TidemillError):
    """The thing named does not exist."""

    code = "NOT_FOUND"


class RateLimited(TidemillError):
    """Too many requests; the same one may succeed after `retry_seconds`."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, *, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Conflict(TidemillError):
    """The request contradicts what is stored."""

    code = "CONFLICT"


class StoreOwned(Conflict):
    """Another process owns the store."""

    def __init__(self, message: str, *, pid: int) -> None:
        super().__init__(message, code="STORE_OWNED")
        self.pid = pid


class IllegalTransition(TidemillError):
    """A move that the state machine does not have."""

    code = "ILLEGAL_TRANSITION"


class MalformedRun(TidemillError):
    """Stored data of one run that cannot be read."""

    code = "MALFORMED_RUN"

    def __init__(self, run_id: str, message: str) -> None:
        super().__init__(f"run {run_id}: {message}")
        self.run_id = run_id


class Unavailable(TidemillError):
    """A passing fault of the store or the bus: the same call may succeed later."""

    code = "UNAVAILABLE"


class CommitUnknown(Unavailable):
    """The connection was lost during a commit, which may or may not have happened."""
