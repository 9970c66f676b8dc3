"""The bare SQL beneath every figure."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import pytest

from bench.bare.facts import Facts, start_facts
from bench.bare.sqlite import BareSqlite, Turnstile
from bench.bare.store import drive
from tidemill.domain.facts import decode_facts, encode_facts
from tidemill.runtime.system import SystemClock
from tidemill.stores.sqlite.store import SqliteStore

RUN = "01a1df90-067b-7701-930e-a19a20bb9647"


def test_the_facts_read_as_real_ones() -> None:
    facts = Facts()
    facts.ended([RUN], 0, last=True)
    facts.leased([RUN], 1)

    found = decode_facts(facts.encoded())
    begun = decode_facts(start_facts([RUN]))

    assert [fact.type for fact in found] == ["task.completed", "workflow.completed", "task.started"]
    assert [fact.type for fact in begun] == ["workflow.started", "task.ready"]


def test_long_rows_of_facts_are_compressed_as_real_ones() -> None:
    row = start_facts([RUN] * 100)
    facts = decode_facts(row)

    assert len(facts) == 200
    assert row == zlib.compress(zlib.decompress(row), 1)
    assert len(row) <= len(encode_facts(facts)) * 1.1


@pytest.mark.parametrize("length", [1, 3])
async def test_two_connections_take_every_task_to_its_end(tmp_path: Path, length: int) -> None:
    store = SqliteStore(tmp_path / "bare.db", SystemClock())
    await store.migrate()
    await store.close()
    turnstile = Turnstile()
    connections = [BareSqlite(tmp_path / "bare.db", turnstile) for _ in range(2)]

    await asyncio.gather(*(drive(one, 3, 5, length) for one in connections))

    assert await connections[0].count_ended() == 2 * 3 * 5 * length
    for one in connections:
        await one.close()
