"""What is left when the chaos is over: rows of the store, marks of the tasks, what the bus told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from tests.simulation.fold import Fold, Step
from tidemill.domain.facts import decode_facts
from tidemill.domain.identifiers import RunId, TaskKey, Token

ROWS = 2_000


class RunRow(NamedTuple):
    """A run, as the store has it."""

    workflow: str
    state: str
    salt: int
    quarantine: str | None
    created_at: int
    ended_at: int | None


class TaskRow(NamedTuple):
    """A task, as the store has it."""

    state: str
    epoch: int
    failures: int
    losses: int
    result: Any


@dataclass
class Evidence:
    """All of it, for the checks."""

    runs: dict[RunId, RunRow] = field(default_factory=dict)
    tasks: dict[TaskKey, TaskRow] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)  # facts, in the order of the outbox
    fold: Fold = field(default_factory=Fold)
    positions: int = 0  # how many outbox rows have one, and the greatest
    position_max: int = 0
    unstamped: int = 0
    event_ids: dict[RunId, list[str]] = field(default_factory=dict)  # in order, of each run
    keys: Counter[RunId] = field(default_factory=Counter)  # how many keys point at a run
    attempts: Counter[str] = field(default_factory=Counter)  # earlier attempts, by reason
    epochs_kept: dict[TaskKey, list[int]] = field(default_factory=dict)  # of earlier attempts
    longest_gap: float = 0.0  # seconds between two commits
    accepted: set[RunId] = field(default_factory=set)
    cancelled: set[RunId] = field(default_factory=set)
    twice: int = 0
    twice_differed: int = 0
    marks: Counter[Token] = field(default_factory=Counter)
    wrong_marks: list[str] = field(default_factory=list)


async def gather(dsn: str, accepted: Path, marks: Path, window: tuple[float, float]) -> Evidence:
    """Read everything; the longest time without a commit is looked for within the window."""
    evidence = Evidence()
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            await _read_runs(connection, evidence)
            await _read_tasks(connection, evidence)
            moments = await _read_outbox(connection, evidence)
            await _read_history(connection, evidence)
    finally:
        await connection.close()
    evidence.longest_gap = _longest_gap(moments, window)
    _read_accepted(accepted, evidence)
    _read_marks(marks, evidence)
    return evidence


async def _read_runs(connection: asyncpg.Connection[asyncpg.Record], evidence: Evidence) -> None:
    query = "SELECT id, workflow, state, input, quarantine, created_at, ended_at FROM run"
    async for row in connection.cursor(query, prefetch=ROWS):
        run_id = RunId(str(row["id"]))
        evidence.runs[run_id] = RunRow(
            row["workflow"],
            row["state"],
            json.loads(row["input"])["salt"],
            row["quarantine"],
            row["created_at"],
            row["ended_at"],
        )


async def _read_tasks(connection: asyncpg.Connection[asyncpg.Record], evidence: Evidence) -> None:
    query = """
        SELECT t.run_id, t.position, t.state, t.epoch, t.failures, t.losses, r.data
        FROM task t LEFT JOIN task_result r USING (run_id, position)
    """
    async for row in connection.cursor(query, prefetch=ROWS):
        key = TaskKey(RunId(str(row["run_id"])), row["position"])
        result = None if row["data"] is None else json.loads(row["data"])
        evidence.tasks[key] = TaskRow(
            row["state"], row["epoch"], row["failures"], row["losses"], result
        )


async def _read_outbox(
    connection: asyncpg.Connection[asyncpg.Record], evidence: Evidence
) -> list[int]:
    """Take in the facts; return when they were committed."""
    query = """
        SELECT number, position, facts, created_at
        FROM outbox ORDER BY position NULLS LAST, number
    """
    moments: list[int] = []
    async for row in connection.cursor(query, prefetch=ROWS):
        evidence.unstamped += row["position"] is None
        evidence.positions += row["position"] is not None
        evidence.position_max = max(evidence.position_max, row["position"] or 0)
        moments.append(row["created_at"])
        for index, fact in enumerate(decode_facts(row["facts"])):
            evidence.steps.append(evidence.fold.apply(fact))
            evidence.event_ids.setdefault(fact.run_id, []).append(f"{row['number']}.{index}")
    return moments


def _longest_gap(moments: list[int], window: tuple[float, float]) -> float:
    begin, end = (round(moment * 1_000_000) for moment in window)
    within = [begin, *sorted(moment for moment in moments if begin < moment < end), end]
    gaps = (after - before for before, after in pairwise(within))
    return max(gaps) / 1_000_000


async def _read_history(connection: asyncpg.Connection[asyncpg.Record], evidence: Evidence) -> None:
    for row in await connection.fetch("SELECT run_id FROM start_key"):
        evidence.keys[RunId(str(row["run_id"]))] += 1
    query = "SELECT run_id, position, epoch, reason FROM attempt ORDER BY epoch"
    async for row in connection.cursor(query, prefetch=ROWS):
        key = TaskKey(RunId(str(row["run_id"])), row["position"])
        evidence.epochs_kept.setdefault(key, []).append(row["epoch"])
        evidence.attempts[row["reason"]] += 1


def _read_accepted(path: Path, evidence: Evidence) -> None:
    for line in _lines(path):
        evidence.accepted.update(line.get("accepted", ()))
        if "cancelled" in line:
            evidence.cancelled.add(line["cancelled"])
        if "twice" in line:
            evidence.twice += line["twice"]
            evidence.twice_differed += not line["same"]


def _read_marks(path: Path, evidence: Evidence) -> None:
    for run_id, position, epoch, _attempt, _pid, key, _at in _lines(path):
        evidence.marks[Token(RunId(run_id), position, epoch)] += 1
        if key != f"{run_id}:{position}":
            evidence.wrong_marks.append(f"{run_id}/{position} had the idempotency key {key}")


def _lines(path: Path) -> Iterator[Any]:
    if not path.exists():
        return
    with path.open() as file:
        for line in file:
            yield json.loads(line)
