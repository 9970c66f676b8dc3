"""A run as lines of JSON, watched while it is carried out."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import msgspec
import pytest

from tests.api.crew import Crew, one_task
from tests.client.conftest import app, client, crew, services  # noqa: F401 - fixtures
from tidemill.cli.event_lines import follow_as_json
from tidemill.client import Client
from tidemill.domain.workflow import Workflow

HELD = msgspec.convert(one_task("hold"), Workflow)


async def test_events_come_as_lines_and_the_run_comes_last(
    client: Client,  # noqa: F811
    crew: Crew,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []

    def hear(line: str) -> None:
        lines.append(line)
        crew.released.set()  # somebody listens: the task may end now

    monkeypatch.setattr("tidemill.cli.event_lines.say", hear)
    monkeypatch.setattr(client, "events", partial(client.events, after="0"))
    started = await client.start(HELD, {})

    code = await asyncio.wait_for(follow_as_json(client, started.id), 20)

    *events, run = map(json.loads, lines)
    assert (code, run["state"]) == (0, "SUCCEEDED")
    assert events[-1]["type"] == "tidemill.workflow.completed.v1"
