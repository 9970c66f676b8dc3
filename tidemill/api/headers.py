"""Headers that every answer carries, and those that let pages of other origins read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tidemill.api.security import NAMESPACE_HEADER, Security

Headers: TypeAlias = list[tuple[bytes, bytes]]

_ALWAYS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_NOTHING = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_OWN_FILES = (
    b"content-security-policy",
    b"; ".join(
        (
            b"default-src 'none'",
            b"script-src 'self'",
            b"style-src 'self'",
            b"img-src 'self'",
            b"connect-src 'self'",
            b"base-uri 'none'",
            b"form-action 'none'",
            b"frame-ancestors 'none'",
        )
    ),
)
_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
_EXPOSED = b"ETag, Location, Retry-After, X-Request-Id"
_ASKED = ", ".join(
    (
        *("Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match"),
        *("Last-Event-ID", NAMESPACE_HEADER, "X-Request-Id"),
    )
)


def standing_headers(security: Security, *, page: bool) -> Headers:
    """What every answer carries; a page may load scripts and styles of this server."""
    secure = [_TRANSPORT] if security.tls else []
    return [*_ALWAYS, _OWN_FILES if page else _NOTHING, *secure]


def allowed_origin(security: Security, headers: Mapping[bytes, bytes]) -> bytes | None:
    """The origin of the page that asks, if it is one of those named in the settings."""
    origin = headers.get(b"origin")
    if origin is None or origin.decode("latin-1") not in security.cors_origins:
        return None
    return origin


def origin_headers(origin: bytes) -> Headers:
    """What lets a page of an allowed origin read the answer. Cookies play no part."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]


def preflight_headers(methods: str) -> Headers:
    """What a browser asks before it lets a page send anything that is not plain."""
    return [
        (b"access-control-allow-methods", methods.encode()),
        (b"access-control-allow-headers", _ASKED.encode()),
        (b"access-control-max-age", b"600"),
    ]
