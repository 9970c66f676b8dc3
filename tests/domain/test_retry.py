"""Backoff."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.domain.retry import delay_seconds, nominal_delay_seconds
from tidemill.domain.workflow import RetryPolicy

CHANCE = st.floats(0, 1)
POLICIES = st.builds(
    RetryPolicy,
    base_seconds=st.floats(0, 86_400),
    factor=st.floats(1, 100),
    cap_seconds=st.floats(0, 604_800),
    jitter=st.floats(0, 1) | st.just("full"),
)


def test_the_delay_grows_by_the_factor_up_to_the_cap() -> None:
    policy = RetryPolicy(base_seconds=1.5, factor=2, cap_seconds=10)

    assert [nominal_delay_seconds(policy, n) for n in range(1, 6)] == [1.5, 3, 6, 10, 10]


def test_a_factor_of_one_keeps_the_delay() -> None:
    assert nominal_delay_seconds(RetryPolicy(base_seconds=5, factor=1), 1_000) == 5


def test_a_base_above_the_cap_is_cut_at_once() -> None:
    assert nominal_delay_seconds(RetryPolicy(base_seconds=90, cap_seconds=60), 1) == 60


def test_a_delay_follows_a_failure() -> None:
    with pytest.raises(AssertionError):
        nominal_delay_seconds(RetryPolicy(), 0)


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 8.0), (0.5, 10.0), (1.0, 12.0)])
def test_jitter_moves_the_delay_by_its_share_either_way(chance: float, seconds: float) -> None:
    policy = RetryPolicy(base_seconds=10, jitter=0.2)

    assert delay_seconds(policy, 1, chance) == pytest.approx(seconds)


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 0.0), (0.25, 2.5), (1.0, 10.0)])
def test_full_jitter_is_anything_up_to_the_delay(chance: float, seconds: float) -> None:
    assert delay_seconds(RetryPolicy(base_seconds=10, jitter="full"), 1, chance) == seconds


@settings(max_examples=200, deadline=None)
@given(POLICIES, st.integers(1, 20))
def test_the_delay_is_the_capped_power(policy: RetryPolicy, failures: int) -> None:
    power = policy.base_seconds * policy.factor ** (failures - 1)

    expected = min(policy.cap_seconds, power)
    assert isclose(nominal_delay_seconds(policy, failures), expected, rel_tol=1e-9, abs_tol=1e-12)


@settings(max_examples=200, deadline=None)
@given(POLICIES, st.integers(1, 1_001), CHANCE)
def test_the_delay_stays_within_its_jitter_and_never_turns_negative(
    policy: RetryPolicy, failures: int, chance: float
) -> None:
    nominal = nominal_delay_seconds(policy, failures)
    low, high = (0.0, 1.0) if policy.jitter == "full" else (1 - policy.jitter, 1 + policy.jitter)

    delay = delay_seconds(policy, failures, chance)

    assert 0 <= delay <= policy.cap_seconds * high * (1 + 1e-12)
    assert nominal * low * (1 - 1e-12) <= delay <= nominal * high * (1 + 1e-12)


@settings(max_examples=100, deadline=None)
@given(POLICIES, st.integers(1, 1_000))
def test_a_later_failure_never_waits_for_less(policy: RetryPolicy, failures: int) -> None:
    earlier, later = (nominal_delay_seconds(policy, failures + more) for more in (0, 1))

    assert earlier <= later


@pytest.mark.parametrize("base", [0.0, 5e-324, 1.0, 86_400.0])
def test_a_thousand_failures_with_the_largest_factor_do_not_overflow(base: float) -> None:
    policy = RetryPolicy(base_seconds=base, factor=100, cap_seconds=604_800, jitter=1)

    assert delay_seconds(policy, 1_000, 1.0) == (2 * 604_800 if base else 0)
