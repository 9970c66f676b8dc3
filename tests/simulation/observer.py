"""The observer: looks at the database after every commit, and keeps what does not fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tests.simulation.checkers import AFTER_COMMIT
from tests.simulation.executions import Executions
from tests.simulation.journal import Journal
from tests.simulation.look import Look, Query
from tests.simulation.nodes import Node
from tests.simulation.violation import Violation
from tests.simulation.workload import Submission
from tidemill.domain.identifiers import Moment, TaskKey, Token


class Observer:
    """Runs the checkers."""

    def __init__(
        self, query: Query, now: Callable[[], Moment], wishes: list[Submission], journal: Journal
    ) -> None:
        self.executions = Executions()
        self.executions.on_begin = self.note_begin
        self.executions.on_inputs = self.note_inputs
        self.executions.on_violation = self.report
        self.look = Look({wish.workflow.name: wish.workflow for wish in wishes}, self.executions)
        self.violations: list[Violation] = []
        self.on_violation: Callable[[], None] = lambda: None
        self.query = query
        self.now = now
        self._journal = journal

    def note_commit(self, moved: bool) -> None:
        """Look at what a commit has changed."""
        if not moved or self.violations:
            return
        look = self.look
        look.refresh(self.query, self.now())
        steps = list(look.new_steps(self.query))
        for step in steps:
            fact = step.fact
            self._journal.note(
                "commit",
                fact.type,
                fact.run_id[-4:],
                fact.task or "",
                step.before,
                "->",
                fact.state,
                f"e{fact.epoch}",
                fact.reason or "",
            )
        for checker in AFTER_COMMIT:
            self.report(*checker(look, steps))

    def note_begin(self, token: Token, node: Node) -> None:
        """A body begins: its grant must be committed, and must not have begun before."""
        self._journal.note(node.name, "body begins", token)
        folded = self.look.fold.tasks.get(token.key)
        if folded is None or folded.epoch < token.epoch:
            self.report(Violation("I6", f"{token} began before its grant was committed"))

    def note_inputs(self, token: Token, inputs: dict[str, Any]) -> None:
        """A body reads its parents' results: they are what those parents have returned."""
        spec = self.look.spec(token.key)
        if spec is None or not spec.inputs:
            return
        parent = int(str(spec.inputs["above"].result)[1:])  # type: ignore[union-attr]
        folded = self.look.fold.tasks.get(TaskKey(token.run_id, parent))
        known = folded is not None and folded.state == "SUCCEEDED"
        expected = {"task": f"t{parent}", "epoch": folded.epoch} if known and folded else None
        # A task that runs in spite of a failed parent may have begun before a replay of it.
        replayed = any(key.run_id == token.run_id for key in self.executions.replays_asked)
        early = replayed and inputs == {"above": None}
        if inputs != {"above": expected} and not early:
            self.report(Violation("I5", f"{token} reads {inputs}, its parent gave {expected}"))

    def report(self, *found: Violation) -> None:
        """Keep violations, and end the seed at the first."""
        if found:
            self.violations.extend(found)
            for violation in found:
                self._journal.note("VIOLATION", str(violation))
            self.on_violation()

    def digest(self) -> str:
        """A hash of the whole outbox: the history of the seed."""
        return hashlib.sha256(b"\n".join(self.look.outbox)).hexdigest()
