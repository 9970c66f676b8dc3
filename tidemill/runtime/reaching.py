"""Reaching servers at start: at once, or with patience where that is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import unquote

from tidemill.domain.errors import TidemillError, Unavailable
from tidemill.domain.urls import MASK, mask_url
from tidemill.ports.clock import Clock

T = TypeVar("T")

PAUSE_FIRST_SECONDS = 0.2
PAUSE_SECONDS_MAX = 5.0
TELL_SECONDS = 10.0


class Unreachable(TidemillError):
    """A server that is needed does not answer."""


class Reach:
    """How long to try, and whom to tell meanwhile."""

    def __init__(self, clock: Clock, seconds: float, tell: Callable[[str], None]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._tell = tell

    async def until(self, what: str, url: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of `attempt`, repeated while the server does not answer; else Unreachable."""
        begun = self._clock.monotonic()
        pause, told_at = PAUSE_FIRST_SECONDS, begun - TELL_SECONDS
        while True:
            try:
                return await attempt()
            except Unavailable as error:
                text = f"{what} {mask_url(url)} cannot be reached: {without_password(error, url)}"
            now = self._clock.monotonic()
            left = begun + self._seconds - now
            if left <= 0:
                raise Unreachable(text)
            if now - told_at >= TELL_SECONDS:
                told_at = now
                self._tell(f"{text}; trying for {left:.0f} s more")
            await self._clock.sleep(min(pause, left))
            pause = min(pause * 2, PAUSE_SECONDS_MAX)


def without_password(error: Exception, url: str) -> str:
    """What an error says, also when the library that raised it quotes the URL."""
    text = " ".join(str(error).split()).replace(url, mask_url(url))
    user, separator, _ = url.partition("://")[2].rpartition("@")
    password = user.partition(":")[2] if separator else ""
    for secret in {password, unquote(password)} - {""}:
        text = text.replace(secret, MASK)
    return text
