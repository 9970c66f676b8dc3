"""The attempts that a worker runs right now, the slots they occupy, and what waits for a slot."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from tidemill.domain.events import CancelConfirmed, Released, WorkerReport
from tidemill.domain.identifiers import Token
from tidemill.domain.routes import PYTHON, is_offered, need_of
from tidemill.ports.clock import Clock
from tidemill.protocol.messages import Assignment, Outcome
from tidemill.worker.ahead import Ahead
from tidemill.worker.attempt import Attempt, Stop
from tidemill.worker.config import WorkerConfig, offers_of
from tidemill.worker.execute import execute
from tidemill.worker.executor import Executor
from tidemill.worker.ledger import Ledger
from tidemill.worker.output import Output
from tidemill.worker.slots import Slots


class Crew:
    """Starts and stops attempts, and enters how they ended in the ledger."""

    def __init__(
        self,
        config: WorkerConfig,
        executors: Mapping[str, Executor],
        clock: Clock,
        *,
        takes_ahead: bool = False,
    ) -> None:
        self.slots = Slots(config.slots)
        self.ledger = Ledger(outcomes_max=config.outcomes_max, bytes_max=config.outcomes_bytes_max)
        self.output = Output(config.log_characters_max)
        self.changed = asyncio.Event()  # there is something to tell the scheduler
        self.slots_changed = False  # and it must hear it before anything else
        self.welcomed = asyncio.Event()  # by the first scheduler that did
        self.worn_out = asyncio.Event()
        self.idle = asyncio.Event()  # nothing runs and nothing waits
        self.idle.set()
        self.released: dict[Token, None] = {}  # stopped because the worker leaves
        self.leaving = False  # nothing runs any more: time for Goodbye
        self._config = config
        self._executors = executors
        self._offers = {*executors.keys() - config.functions, *offers_of(config.functions)}
        self._clock = clock
        self._attempts: dict[Token, Attempt] = {}
        slots_ahead_of = config.slots if takes_ahead else 0
        self._ahead = Ahead(slots_ahead_of, config.ahead_seconds, clock, self._waited_too_long)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """Looked for once: asyncio asks the system for its process id each time."""
        return asyncio.get_running_loop()

    @property
    def held(self) -> tuple[Token, ...]:
        """Every grant that the scheduler has not been told the end of, or has not confirmed."""
        return (*self._attempts, *self._ahead.tokens, *self.released, *self.ledger.tokens)

    @property
    def wanted(self) -> int:
        """Grants that the scheduler may give: more than slots while tasks are short."""
        usable = self.slots.usable
        return usable + self._ahead.wanted if usable else 0

    @property
    def waiting(self) -> int:
        """Grants in hand that no slot has taken yet; those of short tasks soon will be."""
        return len(self._ahead)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What runs right now; other threads may ask."""
        return tuple(self._attempts.values())

    def take(self, assignments: Iterable[Assignment]) -> None:
        """Start what fits; of the rest let wait what may, and hand back what may not."""
        for assignment in assignments:
            token = assignment.token
            if self._knows(token):
                continue
            if self.slots.free > 0:
                self._start(assignment)
            elif self._ahead.room and not self.slots.closed:
                self._ahead.put(assignment)
                self.idle.clear()
            else:
                self._settle(token, Released(token.epoch))

    def can_run(self, assignment: Assignment) -> bool:
        """Whether the worker offers what a task needs."""
        return is_offered(_need_of(assignment), self._offers)

    def cancel(self, tokens: Iterable[Token]) -> None:
        """Stop these and confirm it; what has ended already is reported as it ended."""
        for token in tokens:
            if token in self._attempts:
                self._attempts[token].stop(Stop.CANCEL)
            elif self._ahead.drop(token):
                self._settle(token, CancelConfirmed(token.epoch))
                self._look_whether_idle()

    def abandon(self, tokens: Collection[Token]) -> None:
        """These belong to somebody else now: stop them, and tell nobody how they ended."""
        for token in tokens:
            attempt = self._attempts.pop(token, None)
            if attempt is not None:
                attempt.stop(Stop.CANCEL)
            self._ahead.drop(token)
            self.released.pop(token, None)
        self.ledger.forget(tokens)
        self.output.drop_progress(tokens)  # what they wrote is theirs for ever: it is still sent
        self._look_whether_idle()

    def leave(self) -> None:
        """Say Goodbye as soon as every outcome is on its way."""
        self.leaving = True
        self.changed.set()

    def close(self) -> None:
        """Take no more work, and hand back what has not begun."""
        self.slots.closed = True
        self._tell_slots()
        self._hand_back_waiting()

    def release_rest(self) -> None:
        """Stop what still runs; it goes back to the scheduler unspent, as does what waits."""
        self._hand_back_waiting()
        for attempt in list(self._attempts.values()):
            attempt.stop(Stop.RELEASE)

    # What the attempts tell, as their Watcher.

    def reported(self, attempt: Attempt, report: WorkerReport) -> None:
        """Keep the report, unless the grant was abandoned."""
        if self._attempts.pop(attempt.token, None) is None:
            return
        now = self._clock.monotonic()
        if self._ahead.note(now - attempt.began_at, now):
            self._tell_slots()
        if isinstance(report, Released):
            self.released[attempt.token] = None
        else:
            self._settle(attempt.token, report)
        self._look_whether_idle()

    def stuck(self, attempt: Attempt) -> None:
        """Count the slot out, and notice when too many are."""
        self.slots.mark_stuck(attempt.token)
        self._tell_slots()
        if self.slots.worn_out:
            self.worn_out.set()

    def ended(self, attempt: Attempt) -> None:
        """The slot is free again: the next one begins."""
        was_stuck = self.slots.stuck
        self.slots.give_back(attempt.token)
        if self.slots.stuck != was_stuck:
            self._tell_slots()
        while self._ahead and self.slots.free > 0:
            self._start(self._ahead.take())

    def _knows(self, token: Token) -> bool:
        return (
            token in self._attempts
            or token in self._ahead
            or token in self.ledger
            or token in self.released
        )

    def _start(self, assignment: Assignment) -> None:
        self.slots.take(assignment.token)
        self.idle.clear()
        attempt = Attempt(assignment, self, self.output, self._clock, self._config, self._loop)
        self._attempts[assignment.token] = attempt
        work = execute(
            assignment,
            self._executors,
            attempt.context,
            self._config.result_bytes_max,
            attempt.masking,
        )
        attempt.start(work)

    def _settle(self, token: Token, report: WorkerReport) -> None:
        self.ledger.add(Outcome(token, report))
        self.changed.set()

    def _tell_slots(self) -> None:
        self.slots_changed = True
        self.changed.set()

    def _waited_too_long(self) -> None:
        self._tell_slots()  # which goes out first: what goes back must not come again at once
        self._hand_back_waiting()

    def _hand_back_waiting(self) -> None:
        while self._ahead:
            token = self._ahead.take().token
            self._settle(token, Released(token.epoch))
        self._look_whether_idle()

    def _look_whether_idle(self) -> None:
        if not self._attempts and not self._ahead:
            self.idle.set()


def _need_of(assignment: Assignment) -> str:
    if assignment.executor != PYTHON:
        return need_of(assignment.executor, {})
    try:
        return need_of(PYTHON, msgspec.json.decode(assignment.params, type=dict[str, Any]))
    except (msgspec.DecodeError, RecursionError):
        return ""  # whoever runs it says what is wrong
