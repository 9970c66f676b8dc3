"""Wishes to start runs, with everything worked out that does not need the store."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import msgspec

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.identifiers import SECOND, Moment, RunId, VersionId
from tidemill.domain.inputs import encode_input
from tidemill.domain.plan import Plan, compile_plan, encode_workflow, version_of
from tidemill.domain.run import KEY_CHARACTERS_MAX, RunKind
from tidemill.domain.workflow import Workflow
from tidemill.ports.entropy import Entropy
from tidemill.ports.rows import StartKey

COMMIT_ROWS_MAX = 2_000
"""Task rows in one commit of starts; a larger run is accepted alone, its tasks written by turns."""

KEY_LIFE = 24 * 3_600 * SECOND
"""How long an idempotency key lives at least."""

NEVER: Moment = 2**62

SHAPE_NODES_MAX = 200_000
"""Tasks of the definitions that are kept in memory, ready to be started again."""


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A wish to run a workflow, already checked by `check_workflow`.

    A key starts one run, of one kind: the same wish again finds it. That of a 'dag' is the client's
    own id: it never expires, and the same wish again is a Conflict.
    """

    workflow: Workflow
    input: Any = {}
    namespace: str = "default"
    key: str | None = None
    kind: RunKind = RunKind.RUN
    labels: dict[str, str] = {}  # besides those of the workflow


class Shape:
    """A definition, ready to be started many times."""

    def __init__(
        self, namespace: str, workflow: Workflow, spec: bytes, version_id: VersionId
    ) -> None:
        self.namespace = namespace
        self.workflow = workflow
        self.spec = spec
        self.version_id = version_id
        self.plan: Plan = compile_plan(version_id, workflow)
        self.rows = min(len(self.plan.nodes), COMMIT_ROWS_MAX)
        self.stored = False  # whether this process knows it to be in the store

    @property
    def is_large(self) -> bool:
        """Whether its tasks are written by turns rather than with the run."""
        return len(self.plan.nodes) > COMMIT_ROWS_MAX


class ShapeCache:
    """The shapes used last. One is found at once by the very object that it was made from."""

    def __init__(self, nodes_max: int = SHAPE_NODES_MAX) -> None:
        self._nodes_max = nodes_max
        self._nodes = 0
        self._shapes: OrderedDict[VersionId, Shape] = OrderedDict()
        self._by_object: dict[tuple[str, int], Shape] = {}

    def of(self, namespace: str, workflow: Workflow) -> Shape:
        """The shape of a workflow, made or found."""
        # A shape keeps its workflow alive, so that no other object can have its identity.
        shape = self._by_object.get((namespace, id(workflow)))
        if shape is None:
            shape = self._by_content(namespace, workflow)
        self._shapes.move_to_end(shape.version_id)
        return shape

    def _by_content(self, namespace: str, workflow: Workflow) -> Shape:
        spec = encode_workflow(workflow)
        version_id = version_of(namespace, spec)
        shape = self._shapes.get(version_id)
        return shape or self._keep(Shape(namespace, workflow, spec, version_id))

    def _keep(self, shape: Shape) -> Shape:
        self._shapes[shape.version_id] = shape
        self._by_object[shape.namespace, id(shape.workflow)] = shape
        self._nodes += len(shape.plan.nodes)
        while self._nodes > self._nodes_max and len(self._shapes) > 1:
            _, oldest = self._shapes.popitem(last=False)
            del self._by_object[oldest.namespace, id(oldest.workflow)]
            self._nodes -= len(oldest.plan.nodes)
        return shape


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A request, ready to be committed. Its run id is drawn before the first try."""

    run_id: RunId
    shape: Shape
    input: bytes
    key: str | None
    kind: RunKind
    labels: dict[str, str]

    @property
    def rows(self) -> int:
        """How many rows of tasks are written together with the run."""
        return self.shape.rows

    def start_key(self, now: Moment) -> StartKey:
        """The promise that its key starts one run."""
        assert self.key is not None
        return StartKey(
            namespace=self.shape.namespace,
            kind=self.kind,
            key=self.key,
            body_hash=self._body_hash(),
            run_id=self.run_id,
            expires_at=NEVER if self.kind is RunKind.DAG else now + KEY_LIFE,
        )

    def _body_hash(self) -> str:
        body = self.shape.version_id.encode() + b"\0" + self.input
        if self.labels != self.shape.workflow.labels:
            body += b"\0" + msgspec.json.encode(self.labels, order="deterministic")
        return hashlib.sha256(body).hexdigest()


def prepare(request: StartRequest, entropy: Entropy, shapes: ShapeCache) -> Start:
    """Work out all that does not need the store; InvalidInput when input or key do not fit."""
    if request.key is not None:
        _check_key(request.key)
    workflow = request.workflow
    return Start(
        run_id=entropy.run_id(),
        shape=shapes.of(request.namespace, workflow),
        input=encode_input(workflow.input, request.input),
        key=request.key,
        kind=request.kind,
        labels=workflow.labels | request.labels if request.labels else workflow.labels,
    )


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= KEY_CHARACTERS_MAX:
        text = f"must have 1 to {KEY_CHARACTERS_MAX} characters, this one has {len(key):,}"
    elif not key.isprintable():
        text = "must be plain text, without line breaks or other control characters"
    else:
        return
    raise InvalidInput([Problem(path="key", message=text, code="BAD_KEY")])
