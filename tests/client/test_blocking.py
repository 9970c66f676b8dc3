"""The blocking twin: everything that the client can do, and nothing written twice."""

from __future__ import annotations

import inspect
import threading

import httpx
import pytest

from tests.client.scripted import Script, ok, problem, scripted, started
from tidemill.client import BlockingClient, BlockingRunHandle, Client
from tidemill.domain.errors import NotFound
from tidemill.protocol.resources import RunView

OWN = {"over", "chosen"}  # ways to make an asynchronous client
RUN = {
    "id": "r1",
    "workflow": "orders",
    "version_id": "v",
    "kind": "run",
    "state": "SUCCEEDED",
    "ended": True,
    "progress": {"total": 1, "ended": 1, "failed": 0},
    "created_at": "2027-01-01T00:00:00Z",
}


def _twin(*answers: httpx.Response) -> BlockingClient:
    return BlockingClient(twin=scripted(Script(*answers)))


def test_the_twin_has_every_method_of_the_client() -> None:
    methods = {
        name
        for name, _ in inspect.getmembers(Client, callable)
        if not name.startswith("_") and name not in OWN
    }

    assert {name for name in methods if not hasattr(BlockingClient, name)} == set()


def test_an_answer_is_waited_for_and_an_error_is_raised_here() -> None:
    with _twin(ok(RUN), problem(404, "NOT_FOUND", "no such run")) as client:
        assert client.run("r1").workflow == "orders"
        with pytest.raises(NotFound, match="no such run"):
            client.run("r2")


def test_items_are_fetched_as_they_are_asked_for() -> None:
    first = {"items": [RUN, RUN], "next": "c"}
    second = {"items": [RUN], "next": None}

    with _twin(ok(first), ok(second)) as client:
        runs: list[RunView] = list(client.runs(state=["SUCCEEDED"]))

    assert [run.id for run in runs] == ["r1"] * 3


def test_a_handle_waits_and_reads_the_result() -> None:
    result = {"id": "r1", "state": "SUCCEEDED", "ended": True, "result": 7}

    with _twin(started(), ok(RUN), ok(result)) as client:
        handle: BlockingRunHandle = client.submit("orders", {"kilos": 1}, key="k")
        assert handle.result() == 7


def test_closing_ends_the_thread_however_often() -> None:
    before = set(threading.enumerate())
    client = _twin(ok(RUN))

    client.close()
    client.close()

    assert set(threading.enumerate()) <= before
