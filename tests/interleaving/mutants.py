"""Known bugs of stores and turns, each to be caught in the orders of the pairs named with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from typing import NamedTuple

from tests.interleaving import operations
from tests.interleaving.operations import Action
from tests.simulation.mutants.catalogue import ADVANCE, BEGIN, FENCE, GUARD, TURN
from tests.simulation.mutants.surgery import Cut, function_changed
from tidemill.stores.postgres import statements


class QueryCut(NamedTuple):
    """A text to replace in one named query of the PostgreSQL store, where it occurs once."""

    query: str
    old: str
    new: str


class Mutant(NamedTuple):
    """A bug: what is changed, the pair that shows it, and a guard of the schema to take out."""

    name: str
    pair: tuple[Action, Action]
    cuts: Sequence[Cut | QueryCut]
    schema_cut: str | None = None


DROP_TRIGGER = "DROP TRIGGER task_moves ON task"

MUTANTS = (
    Mutant(
        name="guard removed: the epoch",
        pair=(operations.report_first, operations.reap),
        cuts=(Cut(FENCE, GUARD, "case _ if False:"),),
    ),
    Mutant(
        name="guard removed: the state",
        pair=(operations.report_first, operations.report_first),
        cuts=(
            Cut(
                ADVANCE,
                "is_stale = state not in GRANTED or ",
                "is_stale = ",
            ),
        ),
    ),
    Mutant(
        name="fence outside the transaction",
        pair=(operations.report_first, operations.reap),
        cuts=(
            Cut(
                TURN,
                BEGIN,
                "        async with store.transaction() as early:\n"
                "            tokens = [i.token for i in self.items if isinstance(i, TaskItem)]\n"
                "            keys = [token.key for token in tokens]\n"
                "            self._means.plans.early = await early.tasks.lock(keys)\n" + BEGIN,
            ),
            Cut(
                "tidemill.engine.book:Book.open_locked",
                "self.supply(tasks)",
                "self.supply([row for row in self._plans.early if row.run_id in self.ledgers])",
            ),
        ),
        schema_cut=DROP_TRIGGER,
    ),
    Mutant(
        name="settle without the run lock",
        pair=(operations.report_first, operations.report_second),
        cuts=(
            QueryCut("open_turn", "FOR UPDATE SKIP LOCKED", ""),
            QueryCut("lock_runs_waiting", "FOR UPDATE", ""),
        ),
    ),
    Mutant(
        name="outbox read by number",
        pair=(operations.report_first, operations.submit_and_relay),
        cuts=(
            QueryCut("read_outbox", "SELECT number, position", "SELECT number, number"),
            QueryCut("read_outbox", "WHERE position > $1", "WHERE number > $1"),
            QueryCut("read_outbox", "ORDER BY position", "ORDER BY number"),
        ),
    ),
    Mutant(
        name="claim without a lock",
        pair=(operations.claim_left, operations.claim_right),
        cuts=(QueryCut("claim_ready", "FOR UPDATE OF t SKIP LOCKED", ""),),
    ),
    Mutant(
        name="grant without keeping the session",
        pair=(operations.claim_left, operations.depart),
        cuts=(QueryCut("open_turn", "FOR KEY SHARE", ""),),
    ),
    Mutant(
        name="goodbye without locking the session",
        pair=(operations.claim_left, operations.depart),
        cuts=(
            Cut(
                "tidemill.scheduler.handover:Handovers.depart",
                "await tx.sessions.get(session_id)",
                "pass",
            ),
        ),
    ),
    Mutant(
        name="start by whoever wants the key",
        pair=(operations.submit, operations.submit),
        cuts=(
            Cut(
                "tidemill.engine.starting:write_starts",
                "if _is_own(one, told)]",
                "if told is not None]",
            ),
        ),
    ),
)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Production code with the bug in it."""
    with ExitStack() as stack:
        for cut in mutant.cuts:
            stack.enter_context(_changed(cut))
        yield


def _changed(cut: Cut | QueryCut) -> AbstractContextManager[None]:
    return function_changed(cut) if isinstance(cut, Cut) else _query_changed(cut)


@contextmanager
def _query_changed(cut: QueryCut) -> Iterator[None]:
    before = statements.QUERIES
    text = before[cut.query]
    assert text.count(cut.old) == 1, f"{cut.query}: {cut.old!r} is not there once"
    changed = {**before, cut.query: text.replace(cut.old, cut.new)}
    statements.QUERIES = MappingProxyType(changed)
    try:
        yield
    finally:
        statements.QUERIES = before
