"""How hops are read from the ends of tasks."""

from __future__ import annotations

from bench.workloads.hop import hops_of


def test_a_hop_goes_from_one_end_to_the_next() -> None:
    assert hops_of([1_000, 3_500, 4_000]) == [2.5, 0.5]
