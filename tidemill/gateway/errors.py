"""From errors to gRPC statuses: the one place that knows both."""

from __future__ import annotations

import grpc

from tidemill.domain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    TidemillError,
    Unauthenticated,
    Unavailable,
)


class TooMany(TidemillError):
    """More at once than a service takes."""


class TooLong(TidemillError):
    """A stream that has reached its bound."""


_STATUS_OF = {
    TooMany: grpc.StatusCode.RESOURCE_EXHAUSTED,
    TooLong: grpc.StatusCode.DEADLINE_EXCEEDED,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    RateLimited: grpc.StatusCode.RESOURCE_EXHAUSTED,
    InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    Conflict: grpc.StatusCode.FAILED_PRECONDITION,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    TidemillError: grpc.StatusCode.INTERNAL,
}


def status_of(error: TidemillError) -> grpc.StatusCode:
    """The status that tells a caller what kind of error it is."""
    return next(_STATUS_OF[kind] for kind in type(error).__mro__ if kind in _STATUS_OF)
