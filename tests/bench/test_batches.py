"""How fast batch after batch went."""

from __future__ import annotations

from bench.batches import Batches


def test_the_rate_weighs_batches_by_their_time() -> None:
    batches = Batches("here", [(100, 1.0), (100, 3.0)])

    assert (batches.count, batches.seconds, batches.rate) == (200, 4.0, 50)
    assert batches.series() == [100, 33]


def test_the_last_are_so_many_batches() -> None:
    batches = Batches("here", [(10, 1.0), (20, 1.0), (30, 1.0)])

    assert (len(batches.last(2)), batches.last(2).rate) == (2, 25)
    assert batches.series(2) == [15, 30]
