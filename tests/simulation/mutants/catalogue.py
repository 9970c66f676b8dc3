"""The known bugs: each a change of production code or SQL, each to be caught within its budget."""

from __future__ import annotations

from tests.simulation.mutants.surgery import Cut, Mutant, QueryCut, SchemaCut

ADVANCE = "tidemill.domain.transitions:advance"
TURN = "tidemill.scheduler.turn:Turn._run"
FENCE = "tidemill.domain.transitions:_is_of_another_grant"
GUARD = "case _ if event.epoch != task.epoch:"
BEGIN = "        async with store.transaction() as tx:\n"
TASK_TRIGGER = SchemaCut("DROP TRIGGER task_moves")

MUTANTS = (
    Mutant(
        name="no fencing",
        invariants=("I3",),
        seeds_max=200,
        cuts=(Cut(FENCE, GUARD, "case _ if False:"),),
    ),
    Mutant(
        name="fence check outside the transaction",
        invariants=("I1", "I3", "I6", "I8", "I12"),
        seeds_max=400,
        cuts=(
            TASK_TRIGGER,
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
    ),
    Mutant(
        name="rescue without a state guard",
        invariants=("I8",),
        seeds_max=400,
        cuts=(
            TASK_TRIGGER,
            Cut(
                ADVANCE,
                "    match event:\n",
                "    match event:\n"
                "        case Lost() if event.epoch == task.epoch and state not in GRANTED:\n"
                "            bare = msgspec.structs.replace(\n"
                "                task, told=None, ended_at=None, ended_no=None)\n"
                "            return Transition(_ready(bare, node, now))\n",
            ),
        ),
    ),
    Mutant(
        name="claim by check-then-act",
        invariants=("I3", "I6"),
        seeds_max=100,
        cuts=(
            Cut(
                TURN,
                BEGIN,
                "        async with store.transaction() as early:\n"
                "            lanes = [*backlog.lanes(alone=False), *backlog.lanes(alone=True)]\n"
                "            backlog.early = {\n"
                "                ready: await early.tasks.claim(\n"
                "                    ready.lane, floor=belief.begin, limit=9, alone=ready.alone)\n"
                "                for ready, belief in lanes}\n" + BEGIN,
            ),
            Cut(
                "tidemill.scheduler.admission:Admission._claim",
                "claim = await self._tx.tasks.claim(\n"
                "            ready.lane, floor=belief.begin, limit=limit, alone=ready.alone\n"
                "        )",
                "early = self._backlog.early[ready]; "
                "claim = type(early)(early.tasks[:limit], *early[1:])",
            ),
        ),
    ),
    Mutant(
        name="dependency rule any instead of all",
        invariants=("I5",),
        seeds_max=50,
        cuts=(
            Cut(
                "tidemill.domain.transitions:_counted",
                "if counted.waiting:",
                "if counted.waiting and not event.endings:",
            ),
        ),
    ),
    Mutant(
        name="heartbeat without epoch check",
        invariants=("I4",),
        seeds_max=600,
        cuts=(
            Cut(
                FENCE,
                GUARD,
                "case _ if event.epoch != task.epoch and not isinstance(event, Adopted):",
            ),
            Cut(
                "tidemill.scheduler.handover:Handovers._hand_over",
                "[task.token for task in await tx.sessions.held(old)]",
                "[*(task.token for task in await tx.sessions.held(old)), *sorted(held)]",
            ),
        ),
    ),
    Mutant(
        name="no sweeper for lost messages",
        invariants=("I2", "I10"),
        seeds_max=400,
        cuts=(
            Cut(
                "tidemill.scheduler.service:Scheduler._look_around",
                "await self.desk.look()",
                "pass",
            ),
        ),
    ),
    Mutant(
        name="no lease reaper",
        invariants=("I2",),
        seeds_max=100,
        cuts=(QueryCut("lost_tasks", "LIMIT ?1", "LIMIT 0 * ?1"),),
    ),
    Mutant(
        name="publish before commit",
        invariants=("I6",),
        seeds_max=50,
        cuts=(
            Cut(
                TURN,
                "            await book.write()\n",
                "            from tidemill.protocol.messages import Assignments\n"
                "            from tidemill.scheduler.assignments import _assignment\n"
                "            for grant in admission.grants:\n"
                "                one = _assignment(grant, b'{}', {}, '')\n"
                "                grant.session.send(Assignments((one,)))\n"
                "            await book.write()\n",
            ),
        ),
    ),
    Mutant(
        name="retry count not persisted",
        invariants=("I12",),
        seeds_max=50,
        cuts=(QueryCut("save_task", "failures = new.failures, ", ""),),
    ),
    Mutant(
        name="child counter lowered twice on a doubled report",
        invariants=("I5",),
        seeds_max=400,
        cuts=(
            Cut(
                ADVANCE,
                "    match event:\n",
                "    match event:\n"
                "        case Succeeded() if state is TaskState.SUCCEEDED:\n"
                "            return Transition(_ended(task, state, node, now))\n",
            ),
            QueryCut("add_result", "INSERT INTO", "INSERT OR REPLACE INTO"),
        ),
    ),
    Mutant(
        name="run settled while a retry is pending",
        invariants=("I13",),
        seeds_max=50,
        cuts=(
            Cut(
                "tidemill.domain.ledger:Ledger._record",
                "if after.state in ENDED and before.state not in ENDED:",
                "if after.state in {*ENDED, TaskState.BACKOFF} and before.state not in ENDED:",
            ),
        ),
    ),
    Mutant(
        name="cancel that leaves a live lease",
        invariants=("I4",),
        seeds_max=50,
        cuts=(
            Cut(
                "tidemill.domain.transitions:_stopped",
                "if task.state is TaskState.RUNNING and not is_pool(task.session_id):",
                "if False:",
            ),
        ),
    ),
    Mutant(
        name="outbox row deleted before publish",
        invariants=("I6",),
        seeds_max=200,
        cuts=(
            QueryCut(
                "prune_outbox",
                "FROM outbox INDEXED BY outbox_position\n"
                "        WHERE position <= "
                "(SELECT min(position) FROM outbox_cursor WHERE name <> '$stamped')\n",
                "FROM outbox\n",
            ),
        ),
    ),
    Mutant(
        name="grant to whoever has a free slot",
        invariants=("I17",),
        seeds_max=50,
        cuts=(
            Cut(
                "tidemill.domain.routes:serves",
                "if queue not in queues or not is_offered(need, offers):",
                "if queue not in queues:",
            ),
        ),
    ),
    Mutant(
        name="grant in spite of a pause",
        invariants=("I16",),
        seeds_max=200,
        cuts=(
            Cut(
                "tidemill.scheduler.admission:Admission._is_free",
                "if ledger is None or ledger.is_paused or ledger.is_stopping:",
                "if ledger is None or ledger.is_stopping:",
            ),
        ),
    ),
    Mutant(
        name="what becomes READY in a paused run is not held",
        invariants=("I16",),
        seeds_max=100,
        cuts=(
            Cut(
                "tidemill.domain.ledger:Ledger._move",
                "if move is None or move.task.state is not TaskState.READY:",
                "if True:",
            ),
        ),
    ),
    Mutant(
        name="sweep that ends after its first turn",
        invariants=("I2", "I16"),
        seeds_max=400,
        cuts=(
            Cut(
                "tidemill.domain.ledger:Ledger.sweep",
                "swept = tasks[-1].position + 1 if more else None",
                "swept = None",
            ),
        ),
    ),
    Mutant(
        name="resume that forgets what is held",
        invariants=("I2", "I16"),
        seeds_max=100,
        cuts=(
            Cut(
                "tidemill.domain.run_transitions:_unpaused",
                "state=RunState.RUNNING, swept=0",
                "state=RunState.RUNNING, swept=None",
            ),
        ),
    ),
    Mutant(
        name="pause that forgets tasks not yet written",
        invariants=("I2", "I13"),
        seeds_max=200,
        cuts=(
            Cut(
                "tidemill.domain.run_transitions:_unpaused",
                "if run.started_at is None:",
                "if False:",
            ),
        ),
    ),
    Mutant(
        name="retry that counts parents which run again",
        invariants=("I13", "I2", "I5", "I10"),
        seeds_max=200,
        cuts=(
            Cut(
                "tidemill.domain.reopening:_tally",
                "parent.state if parent and _has_told(plan, parent, place, again) else None",
                "parent.state if parent and parent.state in ENDED else None",
            ),
        ),
    ),
    Mutant(
        name="binding that anyone may take over",
        invariants=("I4", "I5"),
        seeds_max=600,
        cuts=(
            Cut(FENCE, "return task.session_id not in {pool, session_id}", "return False"),
            Cut(
                "tidemill.domain.transitions:_bound",
                "if task.session_id == event.session_id:",
                "if False:",
            ),
        ),
    ),
    Mutant(
        name="command that begins before it is bound",
        invariants=("I3", "I4", "I5", "I14"),
        seeds_max=600,
        cuts=(
            Cut(
                "tidemill.worker.taker:Taker._accept",
                "self._hand.put(assignment, command.alone, self._clock.monotonic())",
                "self._crew.take([assignment])",
            ),
        ),
    ),
    Mutant(
        name="command that nobody takes up is never sent again",
        invariants=("I2", "I12"),
        seeds_max=600,
        cuts=(
            Cut(
                "tidemill.domain.transitions:_begin_by",
                "return now + round(event.start_seconds * SECOND)",
                "return now + round(event.start_seconds * SECOND) * 1_000_000",
            ),
        ),
    ),
)
