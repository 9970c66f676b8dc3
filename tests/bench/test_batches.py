"""How fast batch after batch went."""

from __future__ import annotations

from bench.batches import Batches


def test_the_rate_weighs_batches_by_their_time() -> None:
    batches = Batches([(100, 1.0), (100, 3.0)])

    assert batches.rate == 50
    assert batches.series() == [100, 33]


def test_the_last_seconds_are_whole_batches_and_at_least_one() -> None:
    batches = Batches([(100, 1.0), (100, 2.0), (100, 3.0)])

    assert batches.last_seconds(5.5).rate == 40
    assert batches.last_seconds(0.5).rate == 100 / 3


def test_the_ends_are_so_many_batches() -> None:
    batches = Batches([(10, 1.0), (20, 1.0), (30, 1.0)])

    assert (batches.first(1).rate, batches.last(2).rate) == (10, 25)
    assert batches.series(2) == [15, 30]
