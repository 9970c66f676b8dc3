"""Assignments: what a worker needs to run a granted task, gathered after the commit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tidemill.domain.events import Failed
from tidemill.domain.identifiers import RunId, TaskKey
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


class Assignments:
    """Builds assignments; remembers the inputs of the runs seen last."""

    def __init__(self, payloads: Payloads) -> None:
        self.signer: TokenSigner | None = None  # of tokens of tasks; None: they get none
        self._payloads = payloads
        self._inputs: OrderedDict[RunId, bytes] = OrderedDict()
        self._inputs_bytes = 0

    async def build(
        self, grants: Sequence[Grant], known: Mapping[TaskKey, bytes]
    ) -> list[tuple[Grant, Assignment]]:
        """One assignment for each grant. `known` are results that need not be read again."""
        inputs = await self._inputs_of(sorted({grant.task.run_id for grant in grants}))
        keys = {key for grant in grants for key in _referenced(grant)}
        results = dict(known)
        missing = sorted(keys - known.keys())
        if missing:
            results |= await self._payloads.results(missing)
        return [
            (grant, _assignment(grant, inputs[grant.task.run_id], results, self._token_of(grant)))
            for grant in grants
        ]

    def too_large(self, assignment: Assignment, bytes_max: int) -> TaskItem | None:
        """The failure of a task whose inputs do not fit into a message."""
        size = size_of(assignment)
        if size <= bytes_max:
            return None
        text = f"its inputs are {size} bytes, the limit is {bytes_max}"
        error = TaskError(type="InputTooLarge", message=text)
        event = Failed(epoch=assignment.token.epoch, error=error, final=True)
        return TaskItem(token=assignment.token, event=event)

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
            self._remember(read)
            found |= read
        return found

    def _remember(self, inputs: Mapping[RunId, bytes]) -> None:
        for run_id, data in inputs.items():
            self._inputs_bytes += len(data) - len(self._inputs.get(run_id, b""))
            self._inputs[run_id] = data
        while self._inputs_bytes > INPUTS_BYTES_MAX:
            self._inputs_bytes -= len(self._inputs.popitem(last=False)[1])


class Batches:
    """Assignments cut into messages that the wire can carry."""

    def __init__(self, bytes_max: int) -> None:
        self.batches: list[list[Assignment]] = []
        self._bytes_max = bytes_max
        self._room = 0

    def add(self, assignment: Assignment) -> None:
        """Put one into the last message, or begin a new one."""
        size = size_of(assignment)
        if size > self._room or not self.batches:
            self.batches.append([])
            self._room = self._bytes_max
        self.batches[-1].append(assignment)
        self._room -= size


def size_of(assignment: Assignment) -> int:
    """About how many bytes it takes on the wire."""
    data = (assignment.params, assignment.inputs, assignment.run_input)
    texts = (*assignment.results.values(), *assignment.secrets.values())
    return 500 + len(assignment.task_token) + sum(map(len, data)) + sum(map(len, texts))


def _referenced(grant: Grant) -> list[TaskKey]:
    node = grant.plan.nodes[grant.task.node]
    return [TaskKey(grant.task.run_id, parent) for parent in node.references]


def _assignment(
    grant: Grant, run_input: bytes, results: Mapping[TaskKey, bytes], task_token: str
) -> Assignment:
    node = grant.plan.nodes[grant.task.node]
    return Assignment(
        token=grant.task.token,
        attempt=grant.task.attempt,
        workflow=grant.workflow,
        task=node.id,
        executor=node.spec.executor,
        params=node.params,
        inputs=node.inputs,
        run_input=run_input,
        results={
            grant.plan.nodes[key.position].id: results[key]
            for key in _referenced(grant)
            if key in results
        },
        attempt_seconds=node.spec.timeouts.attempt_seconds,
        heartbeat_seconds=node.spec.timeouts.heartbeat_seconds,
        task_token=task_token,
    )
