"""From what a client sends to a request to start a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from tidemill.api.call import Call
from tidemill.api.decoding import convert
from tidemill.api.routing import Answer
from tidemill.domain.errors import Forbidden, InvalidInput, InvalidWorkflow, Problem
from tidemill.domain.permissions import Permission
from tidemill.domain.validation import check_workflow
from tidemill.domain.workflow import Workflow
from tidemill.engine import shapes
from tidemill.engine.definitions import workflow_of
from tidemill.engine.runs import Started, StartRequest
from tidemill.protocol.resources import StartedView, StartJob, StartRun
from tidemill.protocol.resources.values import Key

IDEMPOTENCY_KEY = "Idempotency-Key"
KEY_HEADER: dict[str, Any] = {IDEMPOTENCY_KEY: Key}

T = TypeVar("T")


class Deployed:
    """Definitions by name and number, each looked up once for one request."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._found: dict[tuple[str, int | None], Workflow] = {}

    async def workflow(self, name: str, number: int | None) -> Workflow:
        """The definition that is deployed under a name; NotFound when there is none."""
        found = self._found.get((name, number))
        if found is None:
            services, namespace = self._call.services, self._call.namespace
            found = await workflow_of(services.store, services.plans, namespace, name, number)
            self._found[name, number] = found
        return found


async def run_request(
    call: Call, body: StartRun, deployed: Deployed | None = None, *, single: bool = True
) -> StartRequest:
    """A request for a run; the header with the key counts for a `single` one only."""
    _check(body)
    if isinstance(body.definition, Workflow):
        if not call.principal.may(call.namespace, Permission.WORKFLOWS_WRITE):
            need = Permission.WORKFLOWS_WRITE
            raise Forbidden(f"a definition that is sent along needs {need}: start a deployed one")
        workflow = checked_definition(body.definition)
    else:
        assert isinstance(body.workflow, str), "checked above"
        book = deployed or Deployed(call)
        workflow = await book.workflow(body.workflow, given(body.version))
    return StartRequest(
        workflow=workflow,
        input=body.input,
        namespace=call.namespace,
        key=key_of(call, body.key) if single else given(body.key),
        labels=body.labels,
    )


def job_request(call: Call, body: StartJob, *, single: bool = True) -> StartRequest:
    """A request for a job; the header with the key counts for a `single` one only."""
    wish = shapes.JobWish(
        type=body.type,
        payload=body.payload,
        max_retries=body.max_retries,
        queue=body.queue,
        priority=body.priority,
        key=key_of(call, body.key) if single else given(body.key),
        labels=body.labels,
    )
    return shapes.job_request(wish, call.namespace, call.services.job_types)


def checked_definition(definition: Workflow, root: str = "definition") -> Workflow:
    """A definition that means something; InvalidInput with every problem, each below `root`."""
    try:
        return check_workflow(definition)
    except InvalidWorkflow as error:
        raise InvalidInput(list(_below(root, error.problems))) from error


def key_of(call: Call, in_body: str | UnsetType) -> str | None:
    """The idempotency key of a request, from its header or its body."""
    header = call.header(IDEMPOTENCY_KEY)
    if header is None:
        return given(in_body)
    key = convert(header, Key, IDEMPOTENCY_KEY)
    if in_body is not UNSET and in_body != key:
        text = "is another key than `key` in the body: send one of them"
        raise InvalidInput([Problem(path=IDEMPOTENCY_KEY, message=text, code="BAD_KEY")])
    return key


def given(value: T | UnsetType) -> T | None:
    """What was sent, None when nothing was."""
    return None if isinstance(value, UnsetType) else value


async def started(call: Call, request: StartRequest, place: str = "runs") -> Answer[StartedView]:
    """Start it, and say where it is found; 200 when its key had started it before."""
    found: Started = await call.services.submissions.submit(request)
    return Answer(
        StartedView(id=found.run_id, created=found.created),
        status=201 if found.created else 200,
        headers={"Location": f"/v1/{place}/{found.run_id}"},
    )


def _check(body: StartRun) -> None:
    if (body.workflow is UNSET) == (body.definition is UNSET):
        text = "give exactly one of workflow and definition"
        raise InvalidInput([Problem(path="workflow", message=text, code="BAD_START")])
    if body.version is not UNSET and body.workflow is UNSET:
        text = "goes only with workflow: a definition that is sent along has no number"
        raise InvalidInput([Problem(path="version", message=text, code="BAD_START")])


def _below(root: str, problems: Iterable[Problem]) -> Iterable[Problem]:
    for problem in problems:
        path = f"{root}.{problem.path}" if problem.path else root
        yield Problem(
            path=path if root else problem.path, message=problem.message, code=problem.code
        )


__all__ = [
    "KEY_HEADER",
    "Deployed",
    "checked_definition",
    "given",
    "job_request",
    "key_of",
    "run_request",
    "started",
]
