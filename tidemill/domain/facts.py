"""Facts: what has happened, as the outbox keeps it and the bus carries it.

Every change of state of a run or a task is told by exactly one fact, committed together with the
change. The state after the change travels along, so that folding the facts rebuilds the tables.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from tidemill.domain.identifiers import Moment, RunId


class FactType(StrEnum):
    """The names under which facts are published."""

    WORKFLOW_ACCEPTED = "workflow.accepted"  # a large run is stored, its tasks are being written
    WORKFLOW_STARTED = "workflow.started"
    WORKFLOW_PAUSED = "workflow.paused"
    WORKFLOW_RESUMED = "workflow.resumed"
    WORKFLOW_STOPPING = "workflow.stopping"  # the rest of the run is being cancelled
    WORKFLOW_COMPLETED = "workflow.completed"
    WORKFLOW_FAILED = "workflow.failed"
    WORKFLOW_CANCELLED = "workflow.cancelled"
    WORKFLOW_REOPENED = "workflow.reopened"
    TASK_READY = "task.ready"
    TASK_STARTED = "task.started"
    TASK_COMPLETED = "task.completed"
    TASK_RETRYING = "task.retrying"  # an attempt failed, another one follows
    TASK_FAILED = "task.failed"  # for good: a dead letter
    TASK_SKIPPED = "task.skipped"
    TASK_UPSTREAM_FAILED = "task.upstream_failed"
    TASK_CANCELLING = "task.cancelling"
    TASK_CANCELLED = "task.cancelled"
    TASK_REOPENED = "task.reopened"  # waits for its parents again, after a replay


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One change of state. `position` and `task` are absent when it is the run that changed."""

    type: FactType
    namespace: str
    run_id: RunId
    workflow: str
    at: Moment
    state: str
    generation: int = 1
    task: str | None = None
    position: int | None = None
    epoch: int = 0
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    reason: str | None = None
    error: str | None = None
    executor: str | None = None  # of a task that is ready
    started_at: Moment | None = None  # of a task that has ended: when its last attempt began


SMALL_BYTES_MAX = 4_096
"""What fits into a page of the database is written as it is; more is compressed.

The facts of a turn repeat each other: they shrink to a twentieth, in less time than a database
takes to write the rest.
"""

_QUICKLY = 1  # a higher level makes them hardly smaller
_TEXT_BEGINS = b"["  # and nothing that was compressed does
_ANY_RUN = RunId("\0")  # no name has such a character, nor a backslash
_ANY_RUN_TEXT = b"\\u0000"
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[Fact, ...])


def encode_facts(facts: Sequence[Fact]) -> bytes:
    """The facts of one transaction, as one row of the outbox holds them."""
    return _packed(_encoder.encode(facts))


class AlikeFacts:
    """The facts that runs begin with which begin alike, encoded once for all of them."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        same = [msgspec.structs.replace(fact, run_id=_ANY_RUN) for fact in facts]
        self._text = _encoder.encode(same)[1:-1]

    def of(self, run_id: RunId) -> bytes:
        """Those of one run, for `joined_facts`."""
        return self._text.replace(_ANY_RUN_TEXT, run_id.encode())


def joined_facts(parts: Sequence[bytes]) -> bytes:
    """As `encode_facts` would have written them."""
    return _packed(b"[" + b",".join(parts) + b"]")


def decode_facts(data: bytes) -> tuple[Fact, ...]:
    """Read back what `encode_facts` wrote; DecodeError when it is something else."""
    if data[:1] == _TEXT_BEGINS:
        return _decoder.decode(data)
    try:
        text = zlib.decompress(data)
    except zlib.error as error:
        raise msgspec.DecodeError(str(error)) from error
    return _decoder.decode(text)


def _packed(text: bytes) -> bytes:
    return text if len(text) <= SMALL_BYTES_MAX else zlib.compress(text, _QUICKLY)
