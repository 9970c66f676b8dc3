"""The contract of listing runs: conditions, order and pages."""

from __future__ import annotations

from typing import TypedDict

import msgspec
import pytest

from tests.builders import NOON, a_run
from tests.contract.given import given
from tidemill.domain.identifiers import SECOND, Moment, RunId
from tidemill.domain.run import Run, RunKind, RunState
from tidemill.ports.queries import RunOrder, RunQuery
from tidemill.ports.store import Store

HOUR = 3_600 * SECOND


class Conditions(TypedDict, total=False):
    """What runs are asked for by."""

    states: tuple[RunState, ...]
    kinds: tuple[RunKind, ...]
    workflow: str
    label: tuple[str, str]
    text: str
    created_after: Moment
    created_before: Moment


def an_id(moment: Moment, number: int = 0) -> RunId:
    """A UUIDv7 of a moment."""
    digits = f"{moment // 1_000:012x}"
    return RunId(f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012x}")


async def listed(store: Store, **conditions: object) -> list[Run]:
    query = msgspec.convert({"namespace": "default", **conditions}, RunQuery)
    return await store.reader.runs(query)


@pytest.mark.parametrize("order", RunOrder)
@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"states": (RunState.RUNNING, RunState.PENDING)},
        {"states": (RunState.RUNNING, RunState.SUCCEEDED)},
        {"states": (RunState.FAILED, RunState.CANCELLED)},
        {"kinds": (RunKind.JOB, RunKind.DAG)},
        {"workflow": "orders"},
        {"workflow": "orders", "kinds": (RunKind.RUN, RunKind.STEPS)},
        {"label": ("team", "blue")},
        {"text": "RDE"},
        {"created_after": NOON + 2 * HOUR, "created_before": NOON + 20 * HOUR},
        {"label": ("team", "blue"), "states": (RunState.RUNNING,), "kinds": (RunKind.JOB,)},
        {"text": "orders", "workflow": "orders", "states": (RunState.FAILED,)},
    ],
)
async def test_pages_together_hold_what_meets_the_conditions_in_order(
    store: Store, order: RunOrder, conditions: Conditions
) -> None:
    runs = _a_mixture()
    await given(store, *runs, a_run(namespace="other", labels={"team": "blue"}))
    wanted = [run for run in runs if _meets(run, conditions)]

    found: list[Run] = []
    while page := await listed(
        store, **conditions, order=order, limit=3, after=found[-1].id if found else None
    ):
        found += page

    assert found == sorted(wanted, key=lambda run: run.id, reverse=order is RunOrder.NEWEST)
    assert wanted


def _a_mixture() -> list[Run]:
    states = [RunState.RUNNING, RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED]
    return [
        a_run(
            id=an_id(NOON + place * HOUR, place),
            created_at=NOON + place * HOUR,
            state=states[place % 4],
            kind=list(RunKind)[place // 4 % 4],
            workflow="orders" if place % 3 else "invoices",
            labels={"team": "blue", "zone": "eu"} if place % 5 else {"team": "red"},
            key=f"key-{place}" if place % 2 else None,
        )
        for place in range(24)
    ]


def _meets(run: Run, conditions: Conditions) -> bool:
    if "created_after" in conditions:
        return conditions["created_after"] <= run.created_at < conditions["created_before"]
    label = conditions.get("label")
    text = conditions.get("text", "").lower()
    return (
        (not conditions.get("states") or run.state in conditions["states"])
        and (not conditions.get("kinds") or run.kind in conditions["kinds"])
        and conditions.get("workflow", run.workflow) == run.workflow
        and (label is None or label in run.labels.items())
        and any(text in part.lower() for part in (run.workflow, run.id, run.key or ""))
    )


async def test_a_run_is_found_by_a_part_of_its_key_or_id(store: Store) -> None:
    one, other = a_run(key="Order 4711/b"), a_run(key=None)
    await given(store, one, other)

    assert await listed(store, text="4711") == [one]
    assert await listed(store, text="order 4711") == [one]
    assert await listed(store, text=other.id[-6:]) == [other]
    assert await listed(store, text="%") == []


async def test_the_moment_counts_though_the_clock_that_drew_the_id_was_wrong(store: Store) -> None:
    late = a_run(id=an_id(NOON - 300 * SECOND), created_at=NOON)
    await given(store, late)

    assert await listed(store, created_after=NOON) == [late]
    assert await listed(store, created_before=NOON) == []


async def test_kind_and_key_are_kept(store: Store) -> None:
    job = a_run(kind=RunKind.JOB, key="order-1")
    await given(store, job)

    assert await store.reader.run("default", job.id) == job
    async with store.transaction() as tx:
        assert await tx.runs.lock([job.id], wait=True) == [job]
