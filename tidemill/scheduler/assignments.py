"""Assignments: what a worker needs to run a granted task, gathered after the commit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidemill.domain.events import Failed
from tidemill.domain.identifiers import RunId, TaskKey, Token
from tidemill.domain.principals import TaskAttempt
from tidemill.domain.task_run import TaskError
from tidemill.engine.identity.task_tokens import sign_task
from tidemill.ports.identity import TokenSigner
from tidemill.ports.store import Payloads
from tidemill.protocol.messages import Assignment
from tidemill.scheduler.admission import Grant
from tidemill.scheduler.inbox import TaskItem
from tidemill.scheduler.pools import Pool

INPUTS_BYTES_MAX = 32 * 1024 * 1024
"""Of run inputs kept in memory, lest they be read again for every task."""

ENTRY_BYTES = 300
"""What keeping an input takes besides the input itself."""


class Built(NamedTuple):
    """A grant, and what its worker is to be sent."""

    grant: Grant
    assignment: Assignment


class Assignments:
    """Builds assignments; remembers the inputs of the runs seen last."""

    def __init__(self, payloads: Payloads) -> None:
        self.signer: TokenSigner | None = None  # of tokens of tasks; None: they get none
        self._payloads = payloads
        self._inputs: OrderedDict[RunId, bytes] = OrderedDict()
        self._inputs_bytes = 0

    def build_at_once(
        self, grants: Sequence[Grant], known: Mapping[TaskKey, bytes]
    ) -> tuple[list[Built], list[Grant]]:
        """One assignment for each grant that needs nothing but what is at hand; and the others."""
        inputs = self._inputs
        built, others = list[Built](), list[Grant]()
        for grant in grants:
            if grant.task.run_id in inputs and all(key in known for key in _referenced(grant)):
                built.append(self._built(grant, inputs, known))
            else:
                others.append(grant)
        return built, others

    async def build(self, grants: Sequence[Grant], known: Mapping[TaskKey, bytes]) -> list[Built]:
        """One assignment for each grant. `known` are results that need not be read again."""
        inputs = await self._inputs_of(sorted({grant.task.run_id for grant in grants}))
        keys = {key for grant in grants for key in _referenced(grant)}
        missing = sorted(keys - known.keys())
        results = {**known, **await self._payloads.results(missing)} if missing else known
        return [self._built(grant, inputs, results) for grant in grants]

    def _built(
        self, grant: Grant, inputs: Mapping[RunId, bytes], results: Mapping[TaskKey, bytes]
    ) -> Built:
        run_input = inputs[grant.task.run_id]
        return Built(grant, _assignment(grant, run_input, results, self._token_of(grant)))

    def _token_of(self, grant: Grant) -> str:
        if self.signer is None or isinstance(grant.session, Pool):
            return ""  # whoever reads the topics of a broker would see it
        node = grant.plan.nodes[grant.task.node]
        attempt = TaskAttempt(
            token=grant.task.token,
            workflow=grant.workflow,
            task=node.id,
            attempt=grant.task.attempt,
        )
        seconds = node.spec.timeouts.attempt_seconds
        return sign_task(self.signer, grant.task.namespace, attempt, seconds)

    async def _inputs_of(self, run_ids: Sequence[RunId]) -> dict[RunId, bytes]:
        # Others read at the same time, and may push out what was here before the await.
        found = {run_id: self._inputs[run_id] for run_id in run_ids if run_id in self._inputs}
        missing = [run_id for run_id in run_ids if run_id not in found]
        if missing:
            read = await self._payloads.inputs(missing)
            self.remember(read)
            found |= read
        return found

    def remember(self, inputs: Mapping[RunId, bytes]) -> None:
        """Keep inputs at hand: whoever has read them spares the dispatch a read of its own."""
        for run_id, data in inputs.items():
            if run_id not in self._inputs:
                self._inputs[run_id] = data
                self._inputs_bytes += len(data) + ENTRY_BYTES
        while self._inputs_bytes > INPUTS_BYTES_MAX:
            self._inputs_bytes -= len(self._inputs.popitem(last=False)[1]) + ENTRY_BYTES


class Batches:
    """Assignments cut into messages that the wire can carry."""

    def __init__(self, bytes_max: int) -> None:
        self.batches: list[list[Assignment]] = []
        self._bytes_max = bytes_max
        self._room = 0

    def add(self, assignment: Assignment, size: int) -> None:
        """Put one of this size into the last message, or begin a new one."""
        if size > self._room or not self.batches:
            self.batches.append([])
            self._room = self._bytes_max
        self.batches[-1].append(assignment)
        self._room -= size


def size_of(assignment: Assignment) -> int:
    """About how many bytes it takes on the wire."""
    size = (
        500
        + len(assignment.task_token)
        + len(assignment.params)
        + len(assignment.inputs)
        + len(assignment.run_input)
    )
    if assignment.results or assignment.secrets:
        size += sum(map(len, (*assignment.results.values(), *assignment.secrets.values())))
    return size


def too_large(token: Token, size: int, bytes_max: int) -> TaskItem:
    """The failure of a task whose inputs do not fit into a message."""
    text = f"its inputs are {size} bytes, the limit is {bytes_max}"
    error = TaskError(type="InputTooLarge", message=text)
    return TaskItem(token=token, event=Failed(epoch=token.epoch, error=error, final=True))


def _referenced(grant: Grant) -> list[TaskKey]:
    node = grant.plan.nodes[grant.task.node]
    return [TaskKey(grant.task.run_id, parent) for parent in node.references]


def _assignment(
    grant: Grant, run_input: bytes, results: Mapping[TaskKey, bytes], task_token: str
) -> Assignment:
    task, nodes = grant.task, grant.plan.nodes
    node = nodes[task.node]
    read = ((nodes[key.position].id, results.get(key)) for key in _referenced(grant))
    return Assignment(
        token=task.token,
        attempt=task.attempt,
        workflow=grant.workflow,
        task=node.id,
        executor=node.spec.executor,
        params=node.params,
        inputs=node.inputs,
        run_input=run_input,
        results={name: data for name, data in read if data is not None},
        attempt_seconds=node.spec.timeouts.attempt_seconds,
        heartbeat_seconds=node.spec.timeouts.heartbeat_seconds,
        task_token=task_token,
    )
