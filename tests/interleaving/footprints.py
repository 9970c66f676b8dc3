"""What each statement locks, reads and writes: enough to know which two may change places.

A write is seen by others only after its commit, so two statements of different transactions depend
on each other when they want locks that exclude each other, or when one of them is the commit of
what the other looks at or waits for. Sequences that give outbox rows their numbers count as locks.
A query that is not described here is taken to touch everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from tidemill.stores.postgres import statements
from tidemill.stores.rows import RUN_WIDTH


class Mode(IntEnum):
    """How a statement takes hold of a row, as PostgreSQL names its row locks."""

    READ = 0
    DRAW = 1  # a number from a sequence
    KEY_SHARE = 2
    NO_KEY_UPDATE = 3
    UPDATE = 4


EXCLUDING = frozenset(
    {
        (Mode.DRAW, Mode.DRAW),
        (Mode.KEY_SHARE, Mode.UPDATE),
        (Mode.UPDATE, Mode.KEY_SHARE),
        (Mode.NO_KEY_UPDATE, Mode.NO_KEY_UPDATE),
        (Mode.NO_KEY_UPDATE, Mode.UPDATE),
        (Mode.UPDATE, Mode.NO_KEY_UPDATE),
        (Mode.UPDATE, Mode.UPDATE),
    }
)


class Access(NamedTuple):
    """One row, or with a shorter path all rows below it; the empty path is the whole table."""

    table: str
    path: tuple[object, ...]
    mode: Mode
    writes: bool = False


class Step(NamedTuple):
    """A statement about to be run: its name, what it wants, and what others see after it."""

    name: str
    accesses: tuple[Access, ...] = ()
    publishes: tuple[Access, ...] = ()


def dependent(one: Step, other: Step) -> bool:
    """Whether the order of these two may make a difference."""
    return (
        any(_exclude(a, b) for a in one.accesses for b in other.accesses)
        or any(_shows(a, b) for a in one.publishes for b in other.accesses)
        or any(_shows(a, b) for a in other.publishes for b in one.accesses)
    )


def _exclude(one: Access, other: Access) -> bool:
    return (one.mode, other.mode) in EXCLUDING and _overlap(one, other)


def _shows(published: Access, access: Access) -> bool:
    return _overlap(published, access) and (published.writes or _exclude(published, access))


def _overlap(one: Access, other: Access) -> bool:
    if "*" in {one.table, other.table}:
        return True
    common = min(len(one.path), len(other.path))
    return one.table == other.table and one.path[:common] == other.path[:common]


def covered(access: Access, locked: Iterable[Access]) -> bool:
    """Whether the row is locked already: nobody else can change it any more."""
    return any(
        lock.table == access.table
        and len(lock.path) > 0
        and access.path[: len(lock.path)] == lock.path
        and lock.mode >= max(access.mode, Mode.NO_KEY_UPDATE)
        for lock in locked
    )


Describe = Callable[[Sequence[Any]], list[Access]]


def _each(table: str, mode: Mode, *, writes: bool = False) -> Describe:
    """Rows named by the first array."""
    return lambda values: [Access(table, (key,), mode, writes) for key in values[0]]


def _listed(table: str, mode: Mode, *, writes: bool = False) -> Describe:
    """Rows named by the ids in the first text."""
    return lambda values: [Access(table, (key,), mode, writes) for key in values[0].split(",")]


def _pairs(table: str, mode: Mode, *, writes: bool = False) -> Describe:
    """Rows named by the first two arrays."""
    return lambda values: [
        Access(table, pair, mode, writes) for pair in zip(values[0], values[1], strict=True)
    ]


def _triples(table: str, mode: Mode, *, writes: bool = False) -> Describe:
    """Rows named by the first three arrays."""
    return lambda values: [
        Access(table, key, mode, writes) for key in zip(*values[:3], strict=True)
    ]


def _one(table: str, mode: Mode, *, writes: bool = False, place: int = 0) -> Describe:
    """The row named by one value, or the rows of the run named by it."""
    return lambda values: [Access(table, (values[place],), mode, writes)]


def _any(table: str, mode: Mode, *, writes: bool = False) -> Describe:
    return lambda _: [Access(table, (), mode, writes)]


def _constant(table: str, mode: Mode, *path: str, writes: bool = False) -> Describe:
    return lambda _: [Access(table, path, mode, writes)]


def _both(one: Describe, other: Describe) -> Describe:
    return lambda values: one(values) + other(values)


def _nothing(_values: Sequence[Any]) -> list[Access]:
    """Reads the clock, or what never changes once it is written."""
    return []


def _appended(values: Sequence[Any]) -> list[Access]:
    return [
        Access("outbox.number", (), Mode.DRAW),
        Access("outbox", (values[0],), Mode.UPDATE, True),
    ]


def _opened(values: Sequence[Any]) -> list[Access]:
    """The sessions, the runs and the tasks that a turn begins with."""
    sessions, ids, positions = values[:3]
    runs = ids.split(",") if ids else []
    places = [part.split() for part in positions.split(",")]
    tasks = [(run, int(place)) for run, those in zip(runs, places, strict=False) for place in those]
    return [
        *_each("session", Mode.KEY_SHARE)([sessions]),
        *_each("run", Mode.UPDATE)([runs]),
        *(Access("task", task, Mode.UPDATE) for task in tasks),
    ]


def _told(facts: Sequence[bytes]) -> list[Access]:
    return [access for row in facts for access in _appended([row])]


def _written(values: Sequence[Any]) -> list[Access]:
    """All that a turn leaves behind: tasks and runs as JSON, results and facts."""
    tasks = [(task["run_id"], task["position"]) for task in json.loads(values[0])]
    runs = [run["id"] for run in json.loads(values[1])]
    results = [(key["run_id"], key["position"]) for key in json.loads(values[2])]
    return [
        *(Access("task", key, Mode.NO_KEY_UPDATE, True) for key in tasks),
        *_told(values[4]),
        *_each("run", Mode.NO_KEY_UPDATE, writes=True)([runs]),
        *(Access("task_result", key, Mode.UPDATE, True) for key in results),
    ]


def _claimed(_values: Sequence[Any]) -> list[Access]:
    """Locks tasks, and looks at their runs."""
    return [Access("task", (), Mode.UPDATE), Access("run", (), Mode.READ)]


DESCRIPTIONS: dict[str, Describe] = {
    "open_turn": _opened,
    "write_turn": _written,
    "now": _nothing,
    "read_inputs": _nothing,
    "read_results": _nothing,
    "read_versions": _nothing,
    "lock_sessions": _each("session", Mode.KEY_SHARE),
    "lock_sessions_to_close": _each("session", Mode.UPDATE),
    "close_sessions": _each("session", Mode.NO_KEY_UPDATE, writes=True),
    "renew_sessions_for": _each("session", Mode.NO_KEY_UPDATE, writes=True),
    "get_session": _one("session", Mode.UPDATE),
    "open_session": _one("session", Mode.UPDATE, writes=True),
    "replace_session": _one("session", Mode.NO_KEY_UPDATE, writes=True),
    "granted_tasks": _any("task", Mode.READ),
    "add_run": _each("run", Mode.UPDATE, writes=True),
    "add_runs_alike": _listed("run", Mode.UPDATE, writes=True),
    "add_run_label": _any("run_label", Mode.UPDATE, writes=True),
    "peek_runs": _each("run", Mode.READ),
    "lock_runs_waiting": _each("run", Mode.UPDATE),
    "lock_runs_skipping": _each("run", Mode.UPDATE),
    "save_run": _each("run", Mode.NO_KEY_UPDATE, writes=True),
    "add_task": _pairs("task", Mode.UPDATE, writes=True),
    "add_tasks_alike": _listed("task", Mode.UPDATE, writes=True),
    "lock_tasks": _pairs("task", Mode.UPDATE),
    "save_task": _pairs("task", Mode.NO_KEY_UPDATE, writes=True),
    "lock_task_states": _one("task", Mode.UPDATE, place=1),
    "lock_ready_tasks": _one("task", Mode.UPDATE),
    "lock_untold_tasks": _one("task", Mode.UPDATE),
    "claim_ready": _claimed,
    "claim_ready_alone": _claimed,
    "add_version": _pairs("version", Mode.UPDATE, writes=True),
    "free_keys": _triples("start_key", Mode.UPDATE, writes=True),
    "take_keys": _triples("start_key", Mode.UPDATE, writes=True),
    "read_keys": _triples("start_key", Mode.READ),
    "add_result": _pairs("task_result", Mode.UPDATE, writes=True),
    "add_attempt": _triples("attempt", Mode.UPDATE, writes=True),
    "append_facts": _appended,
    "take_lead": _any("leader", Mode.UPDATE, writes=True),
    "lock_stamped": _both(_constant("cursor", Mode.UPDATE, "$stamped"), _any("outbox", Mode.READ)),
    "move_stamped": _constant("cursor", Mode.NO_KEY_UPDATE, "$stamped", writes=True),
    "stamp_outbox": _any("outbox", Mode.UPDATE, writes=True),
    "read_outbox": _any("outbox", Mode.READ),
    "read_cursor": _one("cursor", Mode.READ),
    "move_cursor": _one("cursor", Mode.UPDATE, writes=True),
    "pass_over": _any("cursor", Mode.UPDATE, writes=True),
}

# Of these only the rows that come back are locked: others were skipped, or are not there.
LOCKED_ROWS: dict[str, tuple[str, int]] = {
    "lock_sessions": ("session", 1),
    "lock_sessions_to_close": ("session", 1),
    "get_session": ("session", 1),
    "lock_runs_waiting": ("run", 1),
    "lock_runs_skipping": ("run", 1),
    "lock_tasks": ("task", 2),
    "lock_task_states": ("task", 2),
    "lock_ready_tasks": ("task", 2),
    "lock_untold_tasks": ("task", 2),
}
# The first column of these is a run, and the key of the task follows its columns.
CLAIMS = frozenset({"claim_ready", "claim_ready_alone"})
# These may leave rows of theirs unlocked: what is there already, or is not due.
VAGUE = frozenset({"free_keys", "take_keys", "add_version", "add_task", "stamp_outbox"})
EVERYTHING = (Access("*", (), Mode.UPDATE, True),)


def name_of(text: str) -> str:
    """The name of a query, or the statement itself when it has none."""
    return next((name for name, query in statements.QUERIES.items() if query == text), text)


def accesses_of(name: str, values: Sequence[Any]) -> tuple[Access, ...]:
    """What a statement wants."""
    if name == "BEGIN":
        return ()
    describe = DESCRIPTIONS.get(name)
    return EVERYTHING if describe is None else tuple(describe(values))


def held_after(name: str, values: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[Access]:
    """What the transaction holds because of a statement that has been run."""
    wanted = [one for one in accesses_of(name, values) if one.mode >= Mode.KEY_SHARE]
    if name == "open_turn":
        return _opened_rows(rows)
    if name in CLAIMS:
        first = RUN_WIDTH + 1  # behind the run and its input
        return [Access("task", tuple(row[first : first + 2]), Mode.UPDATE) for row in rows]
    if name not in LOCKED_ROWS:
        return wanted
    table, width = LOCKED_ROWS[name]
    mode = wanted[0].mode if wanted else Mode.UPDATE
    return [Access(table, tuple(row[:width]), mode) for row in rows]


def _opened_rows(rows: Sequence[Sequence[Any]]) -> list[Access]:
    alive = rows[-1][-2]
    return [
        *(Access("session", (one,), Mode.KEY_SHARE) for one in (alive or "").split(",") if one),
        *(Access("run", (row[0],), Mode.UPDATE) for row in rows if row[0]),
        *(
            Access("task", tuple(row[RUN_WIDTH : RUN_WIDTH + 2]), Mode.UPDATE)
            for row in rows
            if row[RUN_WIDTH]
        ),
    ]
