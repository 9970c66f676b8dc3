"""What is asked of a bare connection, and the loop that drives one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import uuid_utils

from bench.bare.facts import Facts, start_facts

SESSION = "session-0123456789abcdef"
VERSION = "0" * 64
INPUT = b'{"payload":{"n":1}}'
RESULT = b'{"name":"bench","numbers":[1,2,3]}'


def kind_of(length: int) -> str:
    """Runs of one task are jobs."""
    return "job" if length == 1 else "run"


class BareConnection(Protocol):
    """One connection. Every method but `close` is one transaction with one row in the outbox."""

    async def start(self, run_ids: Sequence[str], length: int, facts: bytes) -> None:
        """Insert runs with their tasks, the first of each READY."""

    async def advance(self, run_ids: Sequence[str], step: int, facts: bytes) -> None:
        """End a task of each run with a small result, and lease the next one."""

    async def turn(self, run_ids: Sequence[str], step: int, wanted: int) -> list[str]:
        """End the last task of runs and the runs, and lease the first tasks of others."""

    async def count_ended(self) -> int:
        """How many tasks of ended runs have ended."""

    async def close(self) -> None:
        """Let go of the store."""


async def drive(connection: BareConnection, batches: int, size: int, length: int) -> None:
    """Take so many batches of runs from their start to their end, and what others have left."""
    held = list[str]()
    for _ in range(batches):
        run_ids = [str(uuid_utils.uuid7()) for _ in range(size)]
        await connection.start(run_ids, length, start_facts(run_ids))
        held = await connection.turn(held, length - 1, size)
        await _walk(connection, held, length)
    while held:
        held = await connection.turn(held, length - 1, size)
        await _walk(connection, held, length)


async def _walk(connection: BareConnection, run_ids: Sequence[str], length: int) -> None:
    for step in range(length - 1):
        facts = Facts()
        facts.ended(run_ids, step, last=False)
        facts.ready(run_ids, step + 1)
        facts.leased(run_ids, step + 1)
        await connection.advance(run_ids, step, facts.encoded())


def turn_facts(ended: Sequence[str], step: int, leased: Sequence[str]) -> bytes:
    """What a turn tells that ends runs and leases first tasks."""
    facts = Facts()
    facts.ended(ended, step, last=True)
    facts.leased(leased, 0)
    return facts.encoded()
