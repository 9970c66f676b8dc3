"""Requests that go on for long: whether those who sent them would still be let in."""

from __future__ import annotations

from tidemill.api.call import Call
from tidemill.domain.errors import Forbidden, TidemillError, Unauthenticated, Unavailable

CHECK_SECONDS = 5.0
"""How often it is asked whether the credentials still hold."""


async def refusal_of(call: Call) -> TidemillError | None:
    """Why the call would be refused by now; None while it would not."""
    try:
        await call.readmit()
    except (Unauthenticated, Forbidden) as error:
        return error
    except Unavailable:
        return None  # the store is away for a moment: it is asked again
    return None


class Welcome:
    """Asks that again and again, but not too often."""

    def __init__(self, call: Call, seconds: float = CHECK_SECONDS) -> None:
        self._call = call
        self._seconds = seconds
        self._clock = call.services.clock
        self._check_at = self._clock.monotonic() + seconds

    async def refusal(self) -> TidemillError | None:
        """The same as `refusal_of`, once it is time to ask; None before."""
        if self._clock.monotonic() < self._check_at:
            return None
        self._check_at = self._clock.monotonic() + self._seconds
        return await refusal_of(self._call)


__all__ = ["CHECK_SECONDS", "Welcome", "refusal_of"]
