"""What a scheduler believes of who waits."""

from __future__ import annotations

import pytest

from tidemill.domain.identifiers import Lane
from tidemill.ports.store import ReadyLane
from tidemill.scheduler.backlog import LATE_MAX, Backlog, LaneLook

LANE = ReadyLane(Lane("default", "default", 0), alone=False)


def look(backlog: Backlog, floor: int, *, empty: bool = False) -> LaneLook:
    """What a claim of now finds."""
    ((_, belief),) = backlog.lanes(alone=False)
    backlog.begin(LANE)
    return LaneLook(lane=LANE, version=belief.version, begin=belief.begin, floor=floor, empty=empty)


def test_news_that_arrives_during_a_claim_is_not_forgotten() -> None:
    backlog = Backlog()
    backlog.note([LANE])
    ((_, belief),) = backlog.lanes(alone=False)

    backlog.note([LANE])
    backlog.learn([LaneLook(lane=LANE, version=belief.version, begin=0, floor=5, empty=True)])

    assert backlog


def test_a_lane_that_ran_empty_is_not_looked_through_from_its_beginning() -> None:
    backlog = Backlog()
    backlog.note([LANE])
    ((_, belief),) = backlog.lanes(alone=False)

    backlog.learn([LaneLook(lane=LANE, version=belief.version, begin=0, floor=50_000, empty=True)])
    backlog.note([LANE])

    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 50_000 - LATE_MAX  # whoever got a place early may commit late


def test_a_refresh_looks_at_a_lane_from_its_beginning() -> None:
    backlog = Backlog()
    backlog.note([LANE])
    ((_, belief),) = backlog.lanes(alone=False)
    backlog.learn([LaneLook(lane=LANE, version=belief.version, begin=0, floor=50_000, empty=False)])

    backlog.refresh([LANE], backlog.version)

    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 0


def test_one_claim_looks_at_a_lane_from_its_beginning_and_others_from_the_floor() -> None:
    backlog = Backlog()
    backlog.note([LANE])
    backlog.learn([look(backlog, 50_000)])
    backlog.refresh([LANE], backlog.version)

    first, second = look(backlog, 50_100), look(backlog, 50_200)
    backlog.learn([second])
    backlog.learn([first])

    assert (first.begin, second.begin) == (0, 50_000)
    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 50_200


def test_the_floor_of_an_empty_lane_is_forgotten_with_the_second_refresh() -> None:
    floors = []
    for refreshes in (1, 2):
        backlog = Backlog()
        backlog.note([LANE])
        backlog.learn([look(backlog, 50_000, empty=True)])
        for _ in range(refreshes):
            backlog.refresh([], backlog.version)
        backlog.note([LANE])
        assert look(backlog, 0).begin == 0
        ((_, belief),) = backlog.lanes(alone=False)
        floors.append(belief.floor)

    assert floors == [50_000, 0]


def test_what_comes_back_is_looked_for_from_the_beginning() -> None:
    backlog = Backlog()
    backlog.note([LANE])
    backlog.learn([look(backlog, 50_000)])
    beside = look(backlog, 60_000)

    backlog.note([LANE], whole=True)
    backlog.learn([beside])

    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 0


def test_news_that_arrives_during_a_look_is_not_forgotten() -> None:
    backlog = Backlog()
    since = backlog.version

    backlog.note([LANE])
    backlog.refresh([], since)

    assert backlog


def test_claims_pass_by_what_an_open_transaction_has_claimed() -> None:
    backlog = Backlog()
    backlog.refresh([LANE], backlog.version)

    backlog.pass_by(look(backlog, 300))
    backlog.pass_by(look(backlog, 200))

    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 300


def test_a_refresh_is_not_undone_by_a_claim_that_began_before_it() -> None:
    backlog = Backlog()
    backlog.refresh([LANE], backlog.version)
    backlog.pass_by(look(backlog, 300))
    old = look(backlog, 500)

    backlog.refresh([LANE], backlog.version)
    backlog.pass_by(old)
    backlog.learn([old])

    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 0


@pytest.mark.parametrize("empty", [False, True])
def test_what_was_passed_by_and_not_claimed_is_looked_at_again(empty: bool) -> None:
    backlog = Backlog()
    backlog.refresh([LANE], backlog.version)
    failed = look(backlog, 300)
    backlog.pass_by(failed)
    other = look(backlog, 320, empty=empty)
    backlog.pass_by(other)

    backlog.look_again([failed])
    backlog.learn([other])

    ((_, belief),) = backlog.lanes(alone=False)
    assert belief.begin == 0
