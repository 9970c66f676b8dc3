"""The query service: how runs and tasks stand, for programs; proto/query.proto documents it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import grpc
from google.protobuf.message import Message

from tidemill.domain.errors import (
    InvalidInput,
    MalformedRun,
    NotFound,
    Problem,
    TidemillError,
    Unavailable,
)
from tidemill.domain.identifiers import RunId, TaskKey
from tidemill.domain.permissions import Permission
from tidemill.domain.plan import Node, Plan
from tidemill.domain.run import RUN_ENDED, Run, RunState
from tidemill.domain.workflow import NAME_CHARACTERS_MAX
from tidemill.engine.plans import Plans, PlansMissing
from tidemill.gateway.errors import TooLong, TooMany
from tidemill.gateway.gates import check_may, current_caller, look_again
from tidemill.gateway.methods import AnyContext, AnyHandler, Request, abort, parsed, unary
from tidemill.gateway.views import attempt_view, run_view, task_view
from tidemill.ports.clock import Clock
from tidemill.ports.queries import RunQuery
from tidemill.ports.store import Store
from tidemill.protocol.generated import query_pb2 as wire

SERVICE = "tidemill.query.v1.Query"
RUNS_MAX = 500
RUNS_DEFAULT = 50
TASKS_MAX = 2_000
TASKS_DEFAULT = 200
WATCHERS_MAX = 200
WATCH_SECONDS_MAX = 3_600.0
LOOK_SECONDS = 0.5
POSITION_MAX = 2**31 - 1

_RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


PERMISSIONS: Mapping[str, Permission] = {
    "GetRun": Permission.RUNS_READ,
    "ListRuns": Permission.RUNS_READ,
    "GetTask": Permission.RUNS_READ,
    "ListTasks": Permission.RUNS_READ,
    "WatchRun": Permission.RUNS_READ,
}
"""What each method asks for, in the namespace that its request is about."""


def query_handler(store: Store, clock: Clock) -> AnyHandler:
    """The service, to be mounted on a GatewayServer."""
    service = QueryService(store, clock)
    unary: dict[str, tuple[type[Any], Callable[[Any], Awaitable[Message]]]] = {
        "GetRun": (wire.GetRunRequest, service.get_run),
        "ListRuns": (wire.ListRunsRequest, service.list_runs),
        "GetTask": (wire.GetTaskRequest, service.get_task),
        "ListTasks": (wire.ListTasksRequest, service.list_tasks),
    }
    methods = {
        name: _unary(kind, answer, PERMISSIONS[name]) for name, (kind, answer) in unary.items()
    }
    watching = PERMISSIONS["WatchRun"]
    methods["WatchRun"] = _stream(wire.WatchRunRequest, service.watch_run, watching)
    return grpc.method_handlers_generic_handler(SERVICE, methods)


class QueryService:
    """Answers from the store alone; any number of them may run."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._plans = Plans(nodes_max=100_000)
        self._watchers = 0

    async def get_run(self, request: wire.GetRunRequest) -> wire.Run:
        """One run of the namespace."""
        return run_view(await self._run(request.namespace, request.run_id))

    async def list_runs(self, request: wire.ListRunsRequest) -> wire.ListRunsResponse:
        """A page of runs, newest first."""
        limit = _page_size(request.page_size, RUNS_DEFAULT, RUNS_MAX)
        query = RunQuery(
            namespace=_namespace(request.namespace),
            states=tuple(_state(name) for name in request.states),
            workflow=_text(request.workflow, "workflow") or None,
            after=_run_id(request.page_token, "page_token") if request.page_token else None,
            limit=limit + 1,  # one more tells whether another page follows
        )
        found = await self._store.reader.runs(query)
        page = found[:limit]
        return wire.ListRunsResponse(
            runs=map(run_view, page),
            next_page_token=page[-1].id if len(found) > limit else "",
        )

    async def get_task(self, request: wire.GetTaskRequest) -> wire.TaskDetails:
        """One task, by its id or its position."""
        run = await self._run(request.namespace, request.run_id)
        plan = await self._plan(run)
        node = _find_node(plan, request)
        key = TaskKey(run.id, node.index)
        tasks = await self._store.reader.tasks(run.namespace, run.id, node.index - 1, 1)
        if not tasks or tasks[0].position != node.index:
            raise NotFound(f"task {node.id} of run {run.id} is not written yet")
        results = await self._store.payloads.results([key])
        return wire.TaskDetails(
            task=task_view(tasks[0], node),
            attempts=map(attempt_view, await self._store.reader.attempts(run.namespace, key)),
            result=results.get(key),
        )

    async def list_tasks(self, request: wire.ListTasksRequest) -> wire.ListTasksResponse:
        """A page of a run's tasks, by position."""
        limit = _page_size(request.page_size, TASKS_DEFAULT, TASKS_MAX)
        after = _position(request.page_token) if request.page_token else -1
        run = await self._run(request.namespace, request.run_id)
        plan = await self._plan(run)
        found = await self._store.reader.tasks(run.namespace, run.id, after, limit + 1)
        page = found[:limit]
        return wire.ListTasksResponse(
            tasks=[task_view(task, plan.nodes[task.node]) for task in page],
            next_page_token=str(page[-1].position) if len(found) > limit else "",
        )

    async def watch_run(self, request: wire.WatchRunRequest) -> AsyncGenerator[wire.Run, None]:
        """The run whenever it has changed, until it has ended."""
        if self._watchers >= WATCHERS_MAX:
            raise TooMany(f"{WATCHERS_MAX} runs are being watched already: try again later")
        self._watchers += 1
        try:
            async with aclosing(self._changes(request.namespace, request.run_id)) as changes:
                async for run in changes:
                    yield run_view(run)
        finally:
            self._watchers -= 1

    async def _changes(self, namespace: str, run_id: str) -> AsyncGenerator[Run, None]:
        deadline = self._clock.monotonic() + WATCH_SECONDS_MAX
        seen: Run | None = None
        while self._clock.monotonic() < deadline:
            try:
                run = await self._run(namespace, run_id)
            except Unavailable:
                if seen is None:
                    raise
                run = seen  # the store is away for a moment: whoever watches can wait
            if run != seen:
                seen = run
                yield run
            if run.state in RUN_ENDED:
                return
            await self._clock.sleep(LOOK_SECONDS)
            await look_again()
            check_may(_namespace(namespace), PERMISSIONS["WatchRun"])
        raise TooLong(f"watched for {WATCH_SECONDS_MAX:g} s: watch again to go on")

    async def _run(self, namespace: str, run_id: str) -> Run:
        return await self._store.reader.run(_namespace(namespace), _run_id(run_id, "run_id"))

    async def _plan(self, run: Run) -> Plan:
        try:
            plans, broken = self._plans.of([run])
        except PlansMissing as missing:
            await self._plans.load(self._store.payloads, missing.version_ids)
            plans, broken = self._plans.of([run])
        if run.version_id in broken:
            raise MalformedRun(run.id, broken[run.version_id])
        return plans[run.version_id]


def _unary(
    kind: type[Request],
    answer: Callable[[Request], Awaitable[Message]],
    permission: Permission,
) -> grpc.RpcMethodHandler[Any, Any]:
    return unary(lambda data: answer(_permitted(kind, data, permission)))


def _stream(
    kind: type[Request],
    answers: Callable[[Request], AsyncGenerator[Message, None]],
    permission: Permission,
) -> grpc.RpcMethodHandler[Any, Any]:
    async def serve(data: bytes, context: AnyContext) -> AsyncIterator[bytes]:
        try:
            async with aclosing(answers(_permitted(kind, data, permission))) as replies:
                async for reply in replies:
                    yield reply.SerializeToString()
        except TidemillError as error:
            await abort(context, error)

    return grpc.unary_stream_rpc_method_handler(serve)


def _permitted(kind: type[Request], data: bytes, permission: Permission) -> Request:
    """The request; Forbidden when it is about a namespace where the caller may not do this."""
    request = parsed(kind, data)
    namespace: str = request.namespace  # type: ignore[attr-defined]  # every request has one
    check_may(_namespace(namespace), permission)
    return request


def _namespace(text: str) -> str:
    return _text(text, "namespace") or current_caller().namespace


def _text(text: str, field: str) -> str:
    if len(text) > NAME_CHARACTERS_MAX or not text.isprintable():
        raise _invalid(field, f"must have at most {NAME_CHARACTERS_MAX} printable characters")
    return text


def _run_id(text: str, field: str) -> RunId:
    if not _RUN_ID.fullmatch(text):
        raise _invalid(field, "must be the id of a run, a UUID in lower case")
    return RunId(text)


def _state(name: str) -> RunState:
    try:
        return RunState(name)
    except ValueError as error:
        known = ", ".join(RunState)
        raise _invalid("states", f"{name[:40]!r} is no state of a run: use {known}") from error


def _page_size(asked: int, default: int, most: int) -> int:
    if asked > most:
        raise _invalid("page_size", f"must be at most {most}, not {asked}")
    return asked or default


def _position(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= POSITION_MAX):
        raise _invalid("page_token", "must be the next_page_token of an earlier answer")
    return int(text)


def _find_node(plan: Plan, request: wire.GetTaskRequest) -> Node:
    match request.WhichOneof("task"):
        case "id":
            found = [node for node in plan.nodes if node.id == request.id]
            name = repr(_text(request.id, "id"))
        case "position":
            found = list(plan.nodes[request.position : request.position + 1])
            name = f"at position {request.position}"
        case _:
            raise _invalid("task", "give id or position")
    if not found:
        raise NotFound(f"workflow {plan.workflow.name} has no task {name}")
    return found[0]


def _invalid(field: str, message: str) -> InvalidInput:
    return InvalidInput([Problem(path=field, message=message, code="query")])
