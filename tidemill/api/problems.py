"""Errors as RFC 9457 problem details: the one place that maps error classes to HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from tidemill.domain.errors import (
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidInput,
    MalformedRun,
    NotFound,
    Problem,
    RateLimited,
    TidemillError,
    Unauthenticated,
    Unavailable,
)
from tidemill.protocol.resources.problems import ProblemItem, ProblemView

RETRY_SECONDS = 1

STATUS_OF: Mapping[type[TidemillError], int] = {
    InvalidInput: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    IllegalTransition: 409,
    MalformedRun: 409,
    RateLimited: 429,
    Unavailable: 503,
}

CODES: Mapping[str, int] = {
    "INVALID": 400,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "NOT_ACCEPTABLE": 406,
    "TIMEOUT": 408,
    "CONFLICT": 409,
    "PRECONDITION_FAILED": 412,
    "TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "RATE_LIMITED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
}
"""The code that stands for each status when an endpoint says nothing more exact."""


class HttpError(TidemillError):
    """A refusal that only HTTP knows: a method, a media type, a size."""

    def __init__(
        self, status: int, message: str, *, code: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.headers = headers or {}


def status_of(error: TidemillError) -> int:
    """The HTTP status of an error, by the nearest class that has one."""
    if isinstance(error, HttpError):
        return error.status
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), 500)


def headers_of(error: TidemillError) -> Mapping[str, str]:
    """What a client must be told beside the body."""
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, RateLimited):
        return {"Retry-After": str(max(1, math.ceil(error.retry_seconds)))}
    if isinstance(error, Unavailable):
        return {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": "Bearer"}
    return {}


def details_of(error: TidemillError, *, instance: str, request_id: str) -> ProblemView:
    """The body of a refusal."""
    status = status_of(error)
    problems = error.problems if isinstance(error, InvalidInput) else ()
    code = _shared_code(error.code, problems)
    return ProblemView(
        type=f"urn:tidemill:problem:{code.lower().replace('_', '-')}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=str(error) or HTTPStatus(status).phrase,
        code=code,
        instance=instance,
        request_id=request_id,
        errors=tuple(
            ProblemItem(path=one.path, message=one.message, code=one.code) for one in problems
        ),
    )


def internal_details(*, instance: str, request_id: str) -> ProblemView:
    """What a client learns about a mistake of ours: nothing but how to ask about it."""
    error = HttpError(
        500, f"an error inside Tidemill; its log has it as {request_id}", code="INTERNAL"
    )
    return details_of(error, instance=instance, request_id=request_id)


def _shared_code(code: str, problems: Sequence[Problem]) -> str:
    shared = {problem.code.upper() for problem in problems}
    return shared.pop() if len(shared) == 1 else code
