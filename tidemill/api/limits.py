"""How often somebody may ask, and how much at once."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.domain.errors import RateLimited
from tidemill.ports.clock import Clock

BUCKETS_MAX = 10_000
BURST_SECONDS = 2.0
"""A bucket holds what comes in so long: who was quiet may ask in a burst."""


class Limiter:
    """Token buckets by name, in bounded memory: who has been quiet longest is forgotten first.

    A forgotten bucket comes back full, which it was, or nearly so.
    """

    def __init__(
        self, clock: Clock, per_second: float, *, burst: float = 0.0, buckets_max: int = BUCKETS_MAX
    ) -> None:
        assert per_second > 0, "a limit of nothing would refuse everything"
        self._clock = clock
        self._rate = per_second
        self._burst = burst or max(1.0, per_second * BURST_SECONDS)
        self._buckets_max = buckets_max
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str) -> None:
        """Take one token from a bucket; RateLimited, and for how long, when it is empty."""
        now = self._clock.monotonic()
        tokens, since = self._buckets.get(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._rate)
        if tokens < 1.0:
            self._keep(name, tokens, now)
            wait = (1.0 - tokens) / self._rate
            message = f"more than {self._rate:g} requests a second: wait and send fewer"
            raise RateLimited(message, retry_seconds=wait)
        self._keep(name, tokens - 1.0, now)

    def _keep(self, name: str, tokens: float, now: float) -> None:
        self._buckets[name] = (tokens, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._buckets_max:
            self._buckets.popitem(last=False)


class Crowd:
    """Counts who is inside, by name, so that nobody takes the places of all."""

    def __init__(self, each_max: int, what: str) -> None:
        self._each_max = each_max
        self._what = what
        self._inside: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._inside)

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Be inside for the length of a block; RateLimited with too many of one name."""
        if self._inside[name] >= self._each_max:
            message = f"{self._each_max:,} {self._what} at once are under way: let some end first"
            raise RateLimited(message, retry_seconds=1.0)
        self._inside[name] += 1
        try:
            yield
        finally:
            self._inside[name] -= 1
            if not self._inside[name]:
                del self._inside[name]
