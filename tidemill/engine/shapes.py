"""Shapes: jobs, chains of steps and DAGs of tasks as workflows, and what was asked read back.

A shape holds what many of them share: executors, retries, edges. What is theirs alone, the
payloads, is the input of the run; so a million jobs of one type have one definition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tidemill.domain.cycles import find_cycles
from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.problems import ProblemList, did_you_mean, listed, show
from tidemill.domain.run import RunKind
from tidemill.domain.slugs import slug, slugs
from tidemill.domain.workflow import (
    PAYLOAD,
    RETRIES_MAX,
    TASKS_MAX,
    TITLE_CHARACTERS_MAX,
    RetryPolicy,
    Source,
    TaskSpec,
    Workflow,
)
from tidemill.engine.preparing import StartRequest

RETRIES_DEFAULT = 3
SHAPES_MAX = 1_000
SHAPE_TASKS_MAX = 100
"""Shapes with more tasks are made anew each time: they are seldom asked for twice."""

INLINE_BYTES = 4 * 1024 * 1024
"""Every task is sent the run's input. When that adds up to more, the tasks hold the payloads."""

DAG_NAME = "dag"


class JobWish(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a known type."""

    type: str
    payload: Any = None
    max_retries: int = RETRIES_DEFAULT
    queue: str = "default"
    priority: int = 0
    key: str | None = None
    labels: dict[str, str] = {}


class StepWish(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a chain; it begins when the one before it has succeeded."""

    name: str
    type: str
    payload: Any = None
    max_retries: int = RETRIES_DEFAULT


class TaskWish(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a DAG, under the client's own id; without a type, of the default one."""

    id: str
    type: str | None = None
    dependencies: tuple[str, ...] = ()
    payload: Any = None
    compensation: Any | UnsetType = UNSET
    max_retries: int = RETRIES_DEFAULT


class _Task(NamedTuple):
    """What a task of a shape is made of."""

    title: str
    type: str
    max_retries: int
    parents: tuple[int, ...]


def job_request(wish: JobWish, namespace: str, types: Collection[str]) -> StartRequest:
    """A run of one task; InvalidInput when nobody knows its type."""
    _refuse(_type_problems("type", wish.type, types))
    _refuse(_retry_problems("max_retries", wish.max_retries))
    return StartRequest(
        workflow=_job_shape(wish.type, wish.max_retries, wish.queue, wish.priority),
        input={PAYLOAD: wish.payload},
        namespace=namespace,
        key=wish.key,
        kind=RunKind.JOB,
        labels=wish.labels,
    )


def steps_request(
    name: str,
    steps: Sequence[StepWish],
    namespace: str,
    types: Collection[str],
    key: str | None = None,
) -> StartRequest:
    """A run of steps, one after the other."""
    problems = ProblemList()
    problems.extend(_title_problems("name", name))
    problems.extend(_count_problems("steps", len(steps)))
    for place, step in enumerate(steps):
        problems.extend(_title_problems(f"steps[{place}].name", step.name))
        problems.extend(_type_problems(f"steps[{place}].type", step.type, types))
        problems.extend(_retry_problems(f"steps[{place}].max_retries", step.max_retries))
    _refuse(problems.all())
    tasks = tuple(
        _Task(step.name, step.type, step.max_retries, (place - 1,) if place else ())
        for place, step in enumerate(steps)
    )
    workflow, value = _shaped(name, tasks, [step.payload for step in steps], "steps")
    return StartRequest(
        workflow=workflow, input=value, namespace=namespace, key=key, kind=RunKind.STEPS
    )


def dag_request(
    workflow_id: str,
    tasks: Sequence[TaskWish],
    namespace: str,
    types: Collection[str],
    default_executor: str,
) -> StartRequest:
    """A run of tasks and their dependencies, under the client's own id, which starts one run."""
    _refuse(_dag_problems(tasks, types))
    places = {task.id: place for place, task in enumerate(tasks)}
    shape = tuple(
        _Task(
            task.id,
            task.type or default_executor,
            task.max_retries,
            tuple(sorted({places[name] for name in task.dependencies})),
        )
        for task in tasks
    )
    workflow, value = _shaped(DAG_NAME, shape, [task.payload for task in tasks], DAG_NAME)
    compensations = {
        str(place): task.compensation
        for place, task in enumerate(tasks)
        if task.compensation is not UNSET
    }
    if compensations:
        value["compensations"] = compensations
    return StartRequest(
        workflow=workflow, input=value, namespace=namespace, key=workflow_id, kind=RunKind.DAG
    )


def job_payload(value: bytes) -> Any:
    """The payload of a job, from the input of its run."""
    return _decoded(value).get(PAYLOAD)


def read_steps(workflow: Workflow, value: bytes) -> list[StepWish]:
    """The steps of a chain as they were asked for, from definition and input."""
    given = _decoded(value)
    return [
        StepWish(
            name=spec.title or spec.id,
            type=spec.executor,
            payload=_payload(spec, given, place),
            max_retries=spec.retry.max_retries,
        )
        for place, spec in enumerate(workflow.tasks)
    ]


def read_tasks(workflow: Workflow, value: bytes) -> list[TaskWish]:
    """The tasks of a DAG as they were asked for, from definition and input."""
    given = _decoded(value)
    compensations = given.get("compensations", {})
    titles = {spec.id: spec.title or spec.id for spec in workflow.tasks}
    return [
        TaskWish(
            id=titles[spec.id],
            type=spec.executor,
            dependencies=tuple(titles[parent] for parent in spec.depends_on),
            payload=_payload(spec, given, place),
            compensation=compensations.get(str(place), UNSET),
            max_retries=spec.retry.max_retries,
        )
        for place, spec in enumerate(workflow.tasks)
    ]


def check_task(title: str, kind: str, max_retries: int, types: Collection[str]) -> None:
    """Refuse a single task that no shape could hold, with every problem."""
    problems = ProblemList()
    problems.extend(_title_problems("name", title))
    problems.extend(_type_problems("type", kind, types))
    problems.extend(_retry_problems("max_retries", max_retries))
    _refuse(problems.all())


def _decoded(value: bytes) -> dict[str, Any]:
    return msgspec.json.decode(value, type=dict[str, Any])


def _payload(spec: TaskSpec, given: dict[str, Any], place: int) -> Any:
    source = spec.inputs.get(PAYLOAD)
    if isinstance(source, Source) and source.const is not UNSET:
        return source.const
    payloads = given.get("payloads", [])
    return payloads[place] if place < len(payloads) else None


@lru_cache(maxsize=SHAPES_MAX)
def _job_shape(kind: str, max_retries: int, queue: str, priority: int) -> Workflow:
    task = TaskSpec(
        id=slug(kind),
        executor=kind,
        inputs={PAYLOAD: Source(input=PAYLOAD)},
        retry=RetryPolicy(max_retries=max_retries),
        queue=queue,
        priority=priority,
    )
    return Workflow(name=slug(kind), tasks=(task,))


def _shaped(
    name: str, tasks: tuple[_Task, ...], payloads: list[Any], fallback: str
) -> tuple[Workflow, dict[str, Any]]:
    """A workflow and the input of its run; payloads that are too much for that are in the tasks."""
    size = len(msgspec.json.encode(payloads))
    if size * len(tasks) > INLINE_BYTES:
        return _shape(name, tasks, fallback, payloads), {}
    make = _cached_shape if len(tasks) <= SHAPE_TASKS_MAX else _shape
    return make(name, tasks, fallback), {"payloads": payloads}


def _shape(
    name: str, tasks: tuple[_Task, ...], fallback: str, payloads: Sequence[Any] | None = None
) -> Workflow:
    ids = slugs(task.title for task in tasks)
    specs = tuple(
        TaskSpec(
            id=ids[place],
            title="" if ids[place] == task.title else task.title,
            executor=task.type,
            inputs={PAYLOAD: _source(place, payloads)},
            depends_on=tuple(ids[parent] for parent in task.parents),
            retry=RetryPolicy(max_retries=task.max_retries),
        )
        for place, task in enumerate(tasks)
    )
    plain = slug(name, fallback)
    return Workflow(name=plain, title="" if plain == name else name, tasks=specs)


_cached_shape = lru_cache(maxsize=SHAPES_MAX)(_shape)


def _source(place: int, payloads: Sequence[Any] | None) -> Source:
    return Source(input=f"payloads[{place}]") if payloads is None else Source(const=payloads[place])


def _dag_problems(tasks: Sequence[TaskWish], types: Collection[str]) -> tuple[Problem, ...]:
    problems = ProblemList()
    problems.extend(_count_problems("tasks", len(tasks)))
    places: dict[str, int] = {}
    for place, task in enumerate(tasks):
        if task.id in places:
            text = f"{show(task.id)} is already the id of tasks[{places[task.id]}], choose another"
            problems.add(Problem(path=f"tasks[{place}].taskId", message=text, code="DUPLICATE_ID"))
        places.setdefault(task.id, place)
        problems.extend(_title_problems(f"tasks[{place}].taskId", task.id))
        problems.extend(_retry_problems(f"tasks[{place}].max_retries", task.max_retries))
        if task.type is not None:
            problems.extend(_type_problems(f"tasks[{place}].type", task.type, types))
    problems.extend(_edge_problems(tasks, places))
    return problems.all()


def _edge_problems(tasks: Sequence[TaskWish], places: dict[str, int]) -> Iterator[Problem]:
    for place, task in enumerate(tasks):
        for index, parent in enumerate(task.dependencies):
            path = f"tasks[{place}].dependencies[{index}]"
            if parent == task.id:
                text = f"task {show(parent)} waits for itself, remove this"
                yield Problem(path=path, message=text, code="CYCLE")
            elif parent not in places:
                text = f"no task has the id {show(parent)}{did_you_mean(parent, places)}"
                yield Problem(path=path, message=text, code="UNKNOWN_TASK")
    for cycle in find_cycles({task.id: task.dependencies for task in tasks}):
        child = places[cycle.child]
        index = tasks[child].dependencies.index(cycle.parent)
        text = f"tasks wait in a circle, each for the next one: {cycle}"
        yield Problem(path=f"tasks[{child}].dependencies[{index}]", message=text, code="CYCLE")


def _count_problems(path: str, count: int) -> Iterator[Problem]:
    if count == 0:
        yield Problem(path=path, message="is empty: name at least one", code="EMPTY")
    elif count > TASKS_MAX:
        text = f"has {count:,} entries, at most {TASKS_MAX:,} are allowed"
        yield Problem(path=path, message=text, code="TOO_MANY")


def _type_problems(path: str, kind: str, types: Collection[str]) -> Iterator[Problem]:
    if kind not in types:
        text = f"{show(kind)} is no type of job: use {listed(sorted(types))}"
        yield Problem(path=path, message=text, code="UNKNOWN_TYPE")


def _title_problems(path: str, title: str) -> Iterator[Problem]:
    if not 1 <= len(title) <= TITLE_CHARACTERS_MAX:
        text = f"must have 1 to {TITLE_CHARACTERS_MAX} characters, this one has {len(title):,}"
        yield Problem(path=path, message=text, code="BAD_NAME")


def _retry_problems(path: str, retries: int) -> Iterator[Problem]:
    if not 0 <= retries <= RETRIES_MAX:
        text = f"must be from 0 to {RETRIES_MAX:,}, not {retries}"
        yield Problem(path=path, message=text, code="OUT_OF_RANGE")


def _refuse(problems: Iterator[Problem] | tuple[Problem, ...]) -> None:
    found = tuple(problems)
    if found:
        raise InvalidInput(found)
