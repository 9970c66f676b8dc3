"""Backoff, as a function of the failures so far and a given chance."""

from __future__ import annotations

from tidemill.domain.workflow import RetryPolicy

RETRY_AFTER_SECONDS_MAX = 3_600.0
"""However long the other side asks us to wait, this is the longest."""


def nominal_delay_seconds(policy: RetryPolicy, failures: int) -> float:
    """The delay before the attempt that follows failure number `failures`, without jitter."""
    assert failures >= 1
    delay = policy.base_seconds
    for _ in range(failures - 1):
        # Stops at the cap: the power itself would overflow long before the last failure.
        if delay >= policy.cap_seconds or policy.factor == 1:
            break
        delay *= policy.factor
    return min(delay, policy.cap_seconds)


def delay_seconds(policy: RetryPolicy, failures: int, chance: float) -> float:
    """The same with jitter: a share of the delay either way, or anything up to it (`full`)."""
    nominal = nominal_delay_seconds(policy, failures)
    if policy.jitter == "full":
        return nominal * chance
    return nominal * (1 + policy.jitter * (2 * chance - 1))
