"""How an error travels: problem details of RFC 9457, with every error at once."""

from __future__ import annotations

import msgspec

PROBLEM_MEDIA_TYPE = "application/problem+json"


class ProblemItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with what was sent: where, what, and how to mend it."""

    path: str
    message: str
    code: str


class ProblemView(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused. Programs look at `code`, people at `detail` and `errors`."""

    status: int
    code: str
    title: str
    detail: str = ""
    type: str = "about:blank"
    instance: str = ""
    request_id: str = ""
    errors: tuple[ProblemItem, ...] = ()


__all__ = ["PROBLEM_MEDIA_TYPE", "ProblemItem", "ProblemView"]
