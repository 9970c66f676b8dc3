"""Many starts at once."""

from __future__ import annotations

import pytest

from tests.api.crew import Crew
from tests.client.scripted import Script, StillSystem, lines, problem, scripted
from tidemill.client import Client
from tidemill.protocol.resources import StartJob


async def test_every_item_is_answered_in_order_and_a_wrong_one_alone_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.client.bulk.PIECE_ITEMS", 2)
    seen: list[int] = []
    wanted: list[StartJob | dict[str, object]] = [
        StartJob(type="noop"),
        {"type": "nope"},
        {"type": "noop", "payload": {}},
    ]

    items = [item async for item in client.bulk(wanted, on_progress=seen.append)]

    assert [item.index for item in items] == [0, 1, 2]
    assert [item.problem is None for item in items] == [True, False, True]
    assert items[1].problem is not None
    assert "nope" in items[1].problem.errors[0].message
    assert seen == [2, 3]


async def test_runs_are_started_in_bulk_as_well(client: Client, crew: Crew) -> None:
    task = {"id": "only", "executor": "echo", "params": {"value": 7}}
    wanted = [{"definition": {"name": "one", "tasks": [task]}}] * 3

    ids = [item.id or "" async for item in client.bulk(wanted, kind="runs")]

    assert [await client.result(run_id, 10) for run_id in ids] == [{"only": 7}] * 3


async def test_a_piece_that_is_sent_again_has_the_same_keys() -> None:
    answer = lines([{"index": 0, "id": "a", "created": True}])
    script = Script(problem(503, "UNAVAILABLE"), answer)

    items = [item async for item in scripted(script).bulk([{"type": "noop"}])]

    assert items[0].id == "a"
    assert script.asked[0].content == script.asked[1].content
    assert b'"key":"key-1"' in script.asked[0].content


async def test_leaving_early_sends_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.client.bulk.PIECE_ITEMS", 1)
    script = Script(lines([{"index": 0, "id": "a", "created": True}]))
    sending = scripted(script, StillSystem()).bulk({"type": "noop"} for _ in range(1_000))

    async for _ in sending:
        break
    await sending.aclose()  # type: ignore[attr-defined]

    assert len(script.asked) <= 5
