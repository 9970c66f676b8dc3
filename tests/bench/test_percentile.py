"""The percentiles of the recovery figures."""

from __future__ import annotations

import pytest

from bench.apart import percentile


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0], 99, 3.0),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
        (list(map(float, range(1, 51))), 99, 50.0),
        (list(map(float, range(1, 201))), 99, 198.0),
    ],
)
def test_a_percentile_is_a_value_that_was_measured(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values[::-1], share) == expected
