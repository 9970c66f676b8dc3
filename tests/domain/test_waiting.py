"""Why tasks wait, in words."""

from __future__ import annotations

import pytest

from tidemill.domain.waiting import WorkerStanding, explain_wait

EXTRACT = "default!python:flow:extract"
START_ONE = ": start one with --import of module flow"


def a_worker(
    *offers: str, queue: str = "default", slots: int = 64, busy: int = 0, **labels: str
) -> WorkerStanding:
    """Somebody who could help, or not."""
    return WorkerStanding(queues=(queue,), labels=labels, offers=offers, slots=slots, busy=busy)


@pytest.mark.parametrize(
    ("route", "workers", "why"),
    [
        (EXTRACT, [], "no worker is connected"),
        ("gpu!shell", [a_worker("shell")], "no worker serves queue gpu"),
        ("default!shell?gpu=a100", [a_worker("shell")], "no worker of queue default has gpu=a100"),
        (
            EXTRACT,
            [a_worker("shell")],
            f"no worker offers python flow:extract on queue default{START_ONE}",
        ),
        (
            f"{EXTRACT}?zone=eu",
            [a_worker("shell", zone="eu"), a_worker("python:flow:extract")],
            f"no worker offers python flow:extract on queue default with zone=eu{START_ONE}",
        ),
        ("default!spark", [a_worker("shell")], "no worker offers spark on queue default"),
        ("default!python", [a_worker("shell")], "no worker offers python on queue default"),
        (EXTRACT, [a_worker("python", busy=64)], "all 64 slots are busy"),
        (EXTRACT, [a_worker(slots=1, busy=1), a_worker("shell")], "the only slot is busy"),
        (EXTRACT, [a_worker("python", slots=0)], "its workers take no more work"),
        (EXTRACT, [a_worker("python:flow:extract", busy=63)], None),
        ("default", [a_worker("shell")], None),
    ],
)
def test_the_first_thing_that_is_missing_is_named(
    route: str, workers: list[WorkerStanding], why: str | None
) -> None:
    assert explain_wait(route, workers) == why


def test_a_full_worker_beside_one_with_room_is_no_reason() -> None:
    workers = [a_worker("python", busy=64), a_worker("python", busy=70, slots=80)]

    assert explain_wait(EXTRACT, workers) is None
