"""Ledgers for tests: a run of which some rows are here."""

from __future__ import annotations

from typing import Any

from tests.builders import NOON, a_run, a_task
from tests.domain.legal_moves import ERROR
from tests.domain.plans import a_plan, a_spec
from tidemill.domain.events import Failed
from tidemill.domain.facts import FactType
from tidemill.domain.identifiers import SECOND
from tidemill.domain.ledger import Journal, Ledger
from tidemill.domain.plan import Plan
from tidemill.domain.task_run import TaskRun, TaskState

LATER = NOON + SECOND
FAN_OUT = a_plan(a_spec("root"), *(a_spec(f"leaf{place}", "root") for place in range(4)))
CHAIN = a_plan(a_spec("a"), a_spec("b", "a"), a_spec("c", "b"), a_spec("d", "c"))
FAILURE = Failed(epoch=1, error=ERROR, final=True)


def a_ledger(plan: Plan, *tasks: TaskRun, rows_max: int = 100, **run: Any) -> Ledger:
    """The ledger of a RUNNING run in which these rows are here."""
    count = len(plan.nodes)
    plain: dict[str, Any] = {"open": count, "next_position": count}
    ledger = Ledger(a_run(**(plain | run)), plan, LATER, lambda: 0.5, rows_max, Journal())
    ledger.supply(tasks)
    return ledger


def running(position: int = 0) -> TaskRun:
    """A RUNNING row under its first epoch."""
    return a_task(position=position, state=TaskState.RUNNING)


def waiting(*positions: int, parents: int = 1) -> list[TaskRun]:
    """PENDING rows that wait for so many parents."""
    return [a_task(position=one, state=TaskState.PENDING, waiting=parents) for one in positions]


def kinds(ledger: Ledger) -> list[FactType]:
    """The facts told so far, by name."""
    return [fact.type for fact in ledger.journal.facts]
