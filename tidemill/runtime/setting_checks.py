"""What is wrong with single values of settings: each check raises ValueError that says it."""

from __future__ import annotations

import re

from tidemill.runtime.addresses import BROKER_SCHEMES, BUS_SCHEMES, parse_endpoint, scheme_of

SINGLE_USER = "single-user"
REGISTRATION_MODES = ("off", "invitation", "open")
IDENTITY = "identity"
SHARED_TOKEN = "shared-token"  # noqa: S105 - the name of a mode
AUTH_MODES = (SINGLE_USER, IDENTITY, SHARED_TOKEN)
LOG_LEVELS = ("debug", "info", "warning", "error")

_ORIGIN = re.compile(r"https?://[a-z0-9.\[\]:-]+")


def check_endpoint(text: str) -> None:
    """One HOST:PORT."""
    parse_endpoint(text)


def check_endpoints(texts: tuple[str, ...]) -> None:
    """Several of them, or unix:PATH."""
    for text in texts:
        if not text.startswith("unix:"):
            parse_endpoint(text)


def check_bus(url: str) -> None:
    """A URL of a bus."""
    if scheme_of(url) not in BUS_SCHEMES:
        raise ValueError("must begin with memory:, postgresql://, redis://, rediss:// or kafka://")


def check_broker(url: str) -> None:
    """A URL of a broker."""
    if scheme_of(url) not in BROKER_SCHEMES:
        raise ValueError("must begin with kafka://, redis:// or rediss://")


def check_auth(text: str) -> None:
    """A mode of authentication."""
    if text not in AUTH_MODES:
        raise ValueError(f"must be one of {', '.join(AUTH_MODES)}")


def check_registration(text: str) -> None:
    """Who may register."""
    if text not in REGISTRATION_MODES:
        raise ValueError(f"must be one of {', '.join(REGISTRATION_MODES)}")


def check_origins(texts: tuple[str, ...]) -> None:
    """Origins of web pages."""
    for text in texts:
        if not _ORIGIN.fullmatch(text):
            raise ValueError(f"{text!r} is not an origin, such as https://ops.example.com")


def check_level(text: str) -> None:
    """A level of logging."""
    if text not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
