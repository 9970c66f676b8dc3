"""Routes: who may serve what."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.domain.routes import Route, fold_route, need_of, read_route, serves

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


def test_a_task_needs_its_executor_and_of_python_its_function() -> None:
    route = fold_route("default", {"gpu": "a100"}, need_of("python", {"function": "flow:extract"}))

    assert need_of("shell", {"argv": ["true"]}) == "shell"
    assert route == "default!python:flow:extract?gpu=a100"
    assert read_route(route) == Route("default", "python:flow:extract", (("gpu", "a100"),))


@pytest.mark.parametrize(
    "params",
    [{}, {"function": 3}, {"function": "flow"}, {"function": "a:b?c"}, {"function": "a:b!"}],
)
def test_a_function_that_nobody_could_offer_is_any_workers(params: dict[str, object]) -> None:
    assert need_of("python", params) == ""
    assert need_of("python", {"function": "m:" + "x" * 300}) == ""


def test_every_worker_evaluates_outputs() -> None:
    assert need_of("$output", {"expression": "a"}) == ""


def test_a_worker_takes_only_what_it_offers() -> None:
    route = fold_route("default", {}, "python:flow:extract")

    assert serves(route, ["default"], {}, {"shell", "python:flow:extract"})
    assert not serves(route, ["default"], {}, {"shell", "python:flow:load"})
    assert not serves(route, ["mail"], {}, {"python:flow:extract"})


def test_an_executor_alone_offers_all_that_it_can_run() -> None:
    assert serves(fold_route("default", {}, "python:flow:extract"), ["default"], {}, {"python"})


def test_a_worker_without_offers_is_taken_to_run_anything() -> None:
    assert serves(fold_route("default", {}, "spark"), ["default"], {}, ())


def test_a_route_of_a_former_release_needs_queue_and_labels_alone() -> None:
    assert serves("default?gpu=a100", ["default"], {"gpu": "a100"}, {"shell"})
    assert not serves("default?gpu=a100", ["default"], {}, {"shell"})


@settings(max_examples=100, deadline=None)
@given(NAMES, LABELS, NAMES)
def test_a_route_can_be_taken_apart_again(queue: str, labels: dict[str, str], need: str) -> None:
    route = fold_route(queue, labels, f"python:{need}:run")

    assert read_route(route) == Route(queue, f"python:{need}:run", tuple(sorted(labels.items())))
