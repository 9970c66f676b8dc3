"""Routes: who may serve what."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.domain.routes import fold_route, serves

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,5}", fullmatch=True)
LABELS = st.dictionaries(NAMES, st.from_regex(r"[a-z0-9._-]{0,5}", fullmatch=True), max_size=4)


def test_a_queue_without_labels_is_its_own_route() -> None:
    assert fold_route("default", {}) == "default"


def test_the_order_of_labels_makes_no_difference() -> None:
    route = fold_route("default", {"zone": "eu", "gpu": "a100"})

    assert (
        route == "default?gpu=a100&zone=eu" == fold_route("default", {"gpu": "a100", "zone": "eu"})
    )


def test_a_worker_serves_its_queues_only() -> None:
    assert serves("mail", {"default", "mail"}, {})
    assert not serves("mail", {"default"}, {})
    assert not serves("mail", {"mailbox"}, {})


def test_a_worker_needs_every_label_with_its_value() -> None:
    route = fold_route("default", {"gpu": "a100", "zone": "eu"})

    assert serves(route, ["default"], {"gpu": "a100", "zone": "eu", "disk": "ssd"})
    assert not serves(route, ["default"], {"gpu": "a100"})
    assert not serves(route, ["default"], {"gpu": "a100", "zone": "us"})


def test_an_empty_value_is_a_value() -> None:
    route = fold_route("default", {"spot": ""})

    assert serves(route, ["default"], {"spot": ""})
    assert not serves(route, ["default"], {})


@settings(max_examples=100, deadline=None)
@given(NAMES, LABELS, NAMES, LABELS)
def test_a_route_is_served_exactly_by_who_has_queue_and_labels(
    queue: str, required: dict[str, str], served: str, own: dict[str, str]
) -> None:
    expected = queue == served and required.items() <= own.items()

    assert serves(fold_route(queue, required), [served], own) is expected
    assert serves(fold_route(queue, required), [queue], own | required)
