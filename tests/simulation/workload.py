"""The work of a seed: what clients submit and ask for, and what the tasks' bodies do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeAlias

import msgspec

from tests.simulation.chance import Chance
from tests.simulation.executions import Executions
from tests.simulation.nodes import Node, NodeEntropy
from tests.simulation.shapes import random_workflow
from tests.simulation.violation import Violation
from tidemill.domain.errors import Conflict, NotFound, Unavailable
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.routes import PYTHON
from tidemill.domain.run import Run
from tidemill.domain.workflow import Timeouts, Workflow
from tidemill.engine import dead_letters, runs
from tidemill.engine.runs import StartRequest
from tidemill.ports.bus import Bus
from tidemill.ports.clock import Clock
from tidemill.ports.queries import DeadQuery
from tidemill.ports.store import Store
from tidemill.sdk.context import FinalError
from tidemill.worker.executor import Call, Executor

TASKS_MIN = 20
SUBMIT_SECONDS = 10.0
PAUSES_MAX = 4
BODY_SECONDS = (0.0, 0.01, 0.1, 0.5, 2.0)

Control: TypeAlias = Callable[[Store, Bus, str, RunId], Awaitable[Run]]


@dataclass
class Pause:
    """A wish that a run is paused for a while, and what became of it."""

    after: float
    seconds: float
    paused: bool = False
    over: bool = False


@dataclass
class Submission:
    """A run that somebody wants, and what became of the wish."""

    workflow: Workflow
    key: str
    at: float
    clients: tuple[int, ...]
    cancel_after: float | None
    pauses: list[Pause] = field(default_factory=list)
    killer: str | None = None  # a task that takes its worker down whenever it runs
    accepted: set[RunId] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    cancelled: bool = False


def draw_submissions(chance: Chance) -> list[Submission]:
    """One to four runs with at least twenty tasks together."""
    random = chance.random
    sizes: list[int] = []
    while sum(sizes) < TASKS_MIN or len(sizes) < random.choice((1, 2, 3)):
        sizes.append(random.choice((3, 5, 8, 12, 20)))
    return [
        Submission(
            workflow=random_workflow(random, f"flow-{place}", size),
            key=f"key-{place}",
            at=chance.between(0, SUBMIT_SECONDS),
            clients=(0, 1) if chance.sometimes("client.twice") else (place % 2,),
            cancel_after=chance.between(0, 12) if chance.sometimes("client.cancel") else None,
            pauses=_draw_pauses(chance),
            killer=f"t{random.randrange(size)}" if chance.sometimes("task.killer") else None,
        )
        for place, size in enumerate(sizes)
    ]


def _draw_pauses(chance: Chance) -> list[Pause]:
    """Some runs are paused once or several times, some right after their start."""
    pauses: list[Pause] = []
    while len(pauses) < PAUSES_MAX and chance.sometimes("client.pause"):
        after = chance.late.choice((0.0, 0.05, 0.5, 2.0, 6.0, 20.0)) * chance.late.random()
        pauses.append(Pause(after, chance.late.choice((0.0, 0.1, 1.0, 4.0, 12.0, 25.0))))
    return pauses


def with_functions(wish: Submission) -> Submission:
    """The same run, with tasks that call functions; every third one runs on any worker."""
    tasks = tuple(
        task
        if place % 3 == 2
        else msgspec.structs.replace(
            task, executor=PYTHON, params={"function": ("sim:a", "sim:b")[place % 3]}
        )
        for place, task in enumerate(wish.workflow.tasks)
    )
    workflow = msgspec.structs.replace(wish.workflow, tasks=tasks)
    return replace(wish, workflow=workflow)


@dataclass
class Client:
    """A program that submits, cancels, pauses and replays; it tries again until it is answered."""

    number: int
    store: Store
    bus: Bus
    clock: Clock
    entropy: NodeEntropy
    chance: Chance
    submissions: list[Submission]
    executions: Executions

    async def run(self) -> None:
        """Do everything that is still to be done."""
        mine = [wish for wish in self.submissions if self.number in wish.clients]
        await asyncio.gather(*(self._submit(wish) for wish in mine), self._replay_dead_letters())

    async def _submit(self, wish: Submission) -> None:
        await self.clock.sleep(max(0.0, wish.at - self.clock.monotonic()))
        request = StartRequest(workflow=wish.workflow, input={}, key=wish.key)
        while self.number not in wish.answered:
            try:
                started = await runs.start(self.store, self.bus, self.entropy, [request])
            except Unavailable:
                await self.clock.sleep(self.chance.between(0.1, 1.0))
            else:
                wish.accepted.add(started[0].run_id)
                wish.answered.add(self.number)
        mine = self.number == wish.clients[0]
        await asyncio.gather(self._cancel_later(wish), *([self._pause(wish)] if mine else []))

    async def _cancel_later(self, wish: Submission) -> None:
        if wish.cancel_after is not None and not wish.cancelled:
            await self.clock.sleep(wish.cancel_after)
            await self._cancel(wish)

    async def _pause(self, wish: Submission) -> None:
        """Pause and resume; what was paused is resumed, by a client that was started again too."""
        for pause in wish.pauses:
            if not pause.paused:
                await self.clock.sleep(pause.after)
                await self._ask(runs.pause, wish)
                pause.paused = True
            if not pause.over:
                await self.clock.sleep(pause.seconds)
                await self._ask(runs.resume, wish)
                pause.over = True

    async def _ask(self, control: Control, wish: Submission) -> None:
        while True:
            try:
                await control(self.store, self.bus, "default", min(wish.accepted))
            except Conflict:
                """It has ended, or is being stopped."""
            except Unavailable:
                await self.clock.sleep(self.chance.late.uniform(0.1, 1.0))
                continue
            return

    async def _cancel(self, wish: Submission) -> None:
        run_id = min(wish.accepted)
        self.executions.cancels_asked.add(run_id)
        while not wish.cancelled:
            try:
                await runs.cancel(self.store, self.bus, "default", run_id)
                wish.cancelled = True
            except Unavailable:
                await self.clock.sleep(self.chance.between(0.1, 1.0))

    async def _replay_dead_letters(self) -> None:
        while self.chance.faults_on:
            await self.clock.sleep(self.chance.between(1.0, 4.0))
            with suppress(Unavailable):
                await self._replay_some()
                await self._retry_some()

    async def _retry_some(self) -> None:
        for run_id in [min(wish.accepted) for wish in self.submissions if wish.accepted]:
            if self.chance.sometimes("client.retry"):
                self.executions.replays_asked.add(TaskKey(run_id, 0))
                with suppress(Conflict, NotFound):
                    await runs.retry_failed(self.store, self.bus, "default", run_id)

    async def _replay_some(self) -> None:
        for task in await self.store.reader.dead_letters(DeadQuery(namespace="default", limit=5)):
            if self.chance.sometimes("client.replay"):
                await self._replay(task.key)

    async def _replay(self, key: TaskKey) -> None:
        self.executions.replays_asked.add(key)
        try:
            await dead_letters.replay(self.store, self.bus, "default", key)
        except (Conflict, NotFound):
            """Somebody was faster, or the run is being stopped."""


class SimulatedExecutor(Executor):
    """Bodies that do nothing but wait, fail, hang, ignore a cancel or take their worker down."""

    def __init__(self, node: Node, clock: Clock, chance: Chance, executions: Executions) -> None:
        self._node = node
        self._clock = clock
        self._chance = chance
        self._executions = executions
        self.killers: dict[str, str | None] = {}
        self.functions: tuple[str, ...] | None = None  # that its worker offers; None: all

    def check(self, params: Mapping[str, Any]) -> list[str]:
        """Anything goes."""
        return []

    async def run(self, call: Call) -> Any:
        """One body."""
        token = call.context.token
        self._executions.begin(token, self._node)
        self._executions.on_inputs(token, call.inputs)
        function = call.params.get("function")
        if function is not None and self.functions is not None and function not in self.functions:
            text = (
                f"{token} needs {function} and runs on {self._node.name}, which does not offer it"
            )
            self._executions.on_violation(Violation("I17", text))
        try:
            await self._work(self.killers.get(call.context.workflow) == call.context.task)
        except asyncio.CancelledError:
            if not self._chance.sometimes("task.ignore_cancel"):
                raise
            await self._clock.sleep(self._chance.between(0.5, 6.0))
            raise
        finally:
            self._executions.end(self._node)
        return {"task": call.context.task, "epoch": token.epoch}

    async def _work(self, kills: bool) -> None:
        await self._clock.sleep(self._chance.random.choice(BODY_SECONDS))
        if kills or self._chance.sometimes("task.crash_worker"):
            self._node.kill()
            await self._node.stop_here()
        if self._chance.sometimes("task.long"):
            await self._clock.sleep(self._chance.between(8.0, 25.0))
        if self._chance.sometimes("task.hang"):
            await self._clock.sleep(8.0)
        if self._chance.sometimes("task.final"):
            raise FinalError("no retry can mend this")
        if self._chance.sometimes("task.fail"):
            raise Broken("this attempt fails")

    async def close(self) -> None:
        """Nothing to let go of."""


class ScriptedExecutor(SimulatedExecutor):
    """Bodies whose outcome depends on the task and the attempt alone, whenever they run."""

    async def run(self, call: Call) -> Any:
        """One body."""
        context = call.context
        random = Random(f"{context.workflow} {context.task} {context.attempt}")
        await self._clock.sleep(0.01)
        if random.random() < 0.05:
            raise FinalError("no retry can mend this")
        if random.random() < 0.3:
            raise Broken("this attempt fails")
        return {"task": context.task}


def without_clocks(wish: Submission) -> Submission:
    """The same submission with nothing in it that depends on when things happen."""
    tasks = tuple(
        msgspec.structs.replace(task, timeouts=Timeouts()) for task in wish.workflow.tasks
    )
    workflow = msgspec.structs.replace(
        wish.workflow, tasks=tasks, timeout_seconds=None, on_failure="continue"
    )
    return replace(wish, workflow=workflow, cancel_after=None, pauses=[])


class Broken(Exception):
    """What a failing body raises."""
