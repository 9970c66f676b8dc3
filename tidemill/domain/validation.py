"""Checking a workflow definition: everything that is wrong with it, in one pass.

Structure is checked by the published JSON Schema. Meaning (ids, references, cycles) is checked on
the same raw data as far as its structure allows, so that one mistake does not hide another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from jsonschema_rs import Draft202012Validator

from tidemill.domain.cycles import find_cycles
from tidemill.domain.definition_schema import workflow_file_json_schema, workflow_json_schema
from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.domain.expressions import (
    EXPRESSION_CHARACTERS_MAX,
    BadExpression,
    compile_expression,
    root_names,
)
from tidemill.domain.input_schema import input_schema_problems, unknown_property
from tidemill.domain.json_values import BAD_NUMBER, json_problems
from tidemill.domain.problems import (
    Part,
    ProblemList,
    did_you_mean,
    format_path,
    listed,
    show,
)
from tidemill.domain.schema_problems import schema_problems
from tidemill.domain.workflow import TaskSpec, Workflow

_SOURCES = ("const", "input", "result", "secret", "list", "object")
_LOOK_ALIKE = str.maketrans("_.", "--")


class _Edge(NamedTuple):
    """A task waits for another one, and this is where the definition says so."""

    path: str
    parent: str


def check_workflow(data: Any, *, in_file: bool = False) -> Workflow:
    """The definition as a value, or InvalidWorkflow with every problem found.

    Takes what a JSON or YAML reader returns, or a Workflow made in Python. With `in_file`, messages
    speak of the fields that a file may have besides; whoever reads files takes them out before.
    """
    raw = _builtins(data) if isinstance(data, Workflow) else data
    problems = ProblemList()
    problems.extend(json_problems(raw))
    if any(problem.code != BAD_NUMBER for problem in problems.all()):
        raise InvalidWorkflow(problems.all())
    schema, validator = _validator()
    worded_by = workflow_file_json_schema() if in_file else schema
    for error in validator.iter_errors(raw):
        problems.extend(schema_problems(error, worded_by))
    if isinstance(raw, dict):
        told = problems.paths()
        meaning = _meaning_problems(raw, problems)
        problems.extend(problem for problem in meaning if problem.path not in told)
    _refuse_any(problems)
    return _converted(raw)


def _refuse_any(problems: ProblemList) -> None:
    if problems:
        raise InvalidWorkflow(problems.all())


def _builtins(workflow: Workflow) -> Any:
    try:
        return msgspec.to_builtins(workflow, str_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"cannot be written as JSON: {error}"
        raise InvalidWorkflow([Problem(path="", message=message, code="NOT_JSON")]) from error


@lru_cache(maxsize=1)
def _validator() -> tuple[dict[str, Any], Draft202012Validator]:
    schema = workflow_json_schema()
    return schema, Draft202012Validator(schema, offline=True)


def _converted(raw: Any) -> Workflow:
    try:
        return msgspec.convert(raw, Workflow)
    except msgspec.ValidationError as error:
        problems = ProblemList()
        problems.extend(_number_problems(raw["tasks"]))
        raise InvalidWorkflow(problems.all()) from error


def _number_problems(tasks: list[Any]) -> Iterator[Problem]:
    """To JSON Schema 2.0 is a whole number, to the types it is not."""
    for position, task in enumerate(tasks):
        try:
            msgspec.convert(task, TaskSpec)
        except msgspec.ValidationError as error:
            place = str(error).partition("`$")[2].rstrip("`")
            message = "must be a whole number, written without a decimal point"
            yield Problem(path=f"tasks[{position}]{place}", message=message, code="WRONG_TYPE")


def _meaning_problems(raw: dict[str, Any], problems: ProblemList) -> Iterator[Problem]:
    entries = raw.get("tasks")
    tasks = {
        position: task
        for position, task in enumerate(entries if isinstance(entries, list | tuple) else ())
        if isinstance(task, dict)
    }
    input_schema = raw.get("input")
    if isinstance(input_schema, dict) and input_schema:
        yield from input_schema_problems(input_schema)
    ids = {task["id"]: None for task in tasks.values() if isinstance(task.get("id"), str)}
    yield from _id_problems(tasks)
    edges = {position: list(_edges(position, task)) for position, task in tasks.items()}
    yield from _edge_problems(tasks, edges, ids, problems)
    yield from _cycle_problems(tasks, edges)
    for position, task in tasks.items():
        yield from _inputs_problems(position, task.get("inputs"), input_schema)
    yield from _output_problems(raw.get("output"), ids)


def _id_problems(tasks: dict[int, Any]) -> Iterator[Problem]:
    exact: dict[str, int] = {}
    folded: dict[str, str] = {}
    for position, task in tasks.items():
        name = task.get("id")
        if not isinstance(name, str):
            continue
        path = f"tasks[{position}].id"
        if name in exact:
            message = f"{show(name)} is already the id of tasks[{exact[name]}], choose another"
            yield Problem(path=path, message=message, code="DUPLICATE_ID")
            continue
        exact[name] = position
        other = folded.setdefault(_fold(name), name)
        if other != name:
            message = (
                f"{show(name)} looks like {show(other)}, the id of tasks[{exact[other]}]: "
                "ids must differ in more than case and '-', '_', '.'"
            )
            yield Problem(path=path, message=message, code="LOOK_ALIKE_ID")


def _fold(name: str) -> str:
    return name.lower().translate(_LOOK_ALIKE)


def _edges(position: int, task: dict[str, Any]) -> Iterator[_Edge]:
    depends_on = task.get("depends_on")
    if isinstance(depends_on, list | tuple):
        for index, parent in enumerate(depends_on):
            if isinstance(parent, str):
                yield _Edge(f"tasks[{position}].depends_on[{index}]", parent)
    inputs = task.get("inputs")
    if isinstance(inputs, dict):
        for path, source in _sources(("tasks", position, "inputs"), inputs.items()):
            if isinstance(source.get("result"), str):
                yield _Edge(format_path((*path, "result")), source["result"])


def _sources(
    path: tuple[Part, ...], parts: Iterable[tuple[Part, Any]]
) -> Iterator[tuple[tuple[Part, ...], dict[str, Any]]]:
    """The parts that say where they come from, and what those are put together from."""
    for name, source in parts:
        if not isinstance(source, dict):
            continue
        place = (*path, name)
        yield place, source
        if isinstance(source.get("list"), list | tuple):
            yield from _sources((*place, "list"), enumerate(source["list"]))
        if isinstance(source.get("object"), dict):
            yield from _sources((*place, "object"), source["object"].items())


def _edge_problems(
    tasks: dict[int, Any], edges: dict[int, list[_Edge]], ids: dict[str, None], found: ProblemList
) -> Iterator[Problem]:
    for position, task_edges in edges.items():
        own = tasks[position].get("id")
        for path, parent in task_edges:
            if parent == own:
                message = f"task {show(own)} waits for itself, remove this"
                yield Problem(path=path, message=message, code="SELF_LOOP")
            elif parent not in ids:
                hint = "" if found.full else _id_hint(parent, ids)
                message = f"no task has the id {show(parent)}{hint}"
                yield Problem(path=path, message=message, code="UNKNOWN_TASK")


def _id_hint(name: str, ids: dict[str, None]) -> str:
    alike = next((each for each in ids if _fold(each) == _fold(name)), None)
    return f", did you mean {show(alike)}?" if alike else did_you_mean(name, ids)


def _cycle_problems(tasks: dict[int, Any], edges: dict[int, list[_Edge]]) -> Iterator[Problem]:
    parents: dict[str, list[str]] = {}
    positions: dict[str, int] = {}
    for position, task_edges in edges.items():
        name = tasks[position].get("id")
        if isinstance(name, str) and name not in parents:
            parents[name] = [edge.parent for edge in task_edges]
            positions[name] = position
    for cycle in find_cycles(parents):
        path = next(e.path for e in edges[positions[cycle.child]] if e.parent == cycle.parent)
        message = f"tasks wait in a circle, each for the next one: {cycle}"
        yield Problem(path=path, message=message, code="CYCLE")


def _inputs_problems(position: int, inputs: Any, input_schema: Any) -> Iterator[Problem]:
    if not isinstance(inputs, dict):
        return
    for path, source in _sources(("tasks", position, "inputs"), inputs.items()):
        yield from _source_problems(format_path(path), source, input_schema)


def _source_problems(path: str, source: dict[str, Any], input_schema: Any) -> Iterator[Problem]:
    given = [field for field in _SOURCES if field in source]
    # A field that is not known has been told of, and is most likely the missing one.
    if len(given) > 1 or (not given and source.keys() <= {"path"}):
        count = f"has {listed(given, 'and')}" if given else "does not say where it comes from"
        message = f"{count}: give exactly one of {listed(_SOURCES, 'and')}"
        yield Problem(path=path, message=message, code="BAD_SOURCE")
    elif "path" in source and "result" not in source:
        message = "goes only with result: it reads from the result of a task"
        yield Problem(path=f"{path}.path", message=message, code="BAD_SOURCE")
    yield from _expression_problems(f"{path}.path", source.get("path"))
    expression = source.get("input")
    yield from _expression_problems(f"{path}.input", expression)
    for root in sorted(_roots(expression)):
        complaint = unknown_property(input_schema, root) if isinstance(input_schema, dict) else None
        if complaint:
            yield Problem(path=f"{path}.input", message=complaint, code="UNKNOWN_INPUT")


def _output_problems(expression: Any, ids: dict[str, None]) -> Iterator[Problem]:
    yield from _expression_problems("output", expression)
    for root in sorted(_roots(expression) - ids.keys()):
        dotted = next((each for each in ids if each.startswith(f"{root}.")), None)
        hint = f"; an id with a dot is quoted: {show(dotted)}" if dotted else _id_hint(root, ids)
        message = f"no task has the id {show(root)}{hint}"
        yield Problem(path="output", message=message, code="UNKNOWN_TASK")


def _expression_problems(path: str, expression: Any) -> Iterator[Problem]:
    if not _is_readable(expression):
        return
    try:
        compile_expression(expression)
    except BadExpression as error:
        yield Problem(path=path, message=f"{show(expression)} {error}", code="BAD_EXPRESSION")


def _roots(expression: Any) -> frozenset[str]:
    """What an expression certainly reads; nothing when it is broken or reads everything."""
    try:
        names = root_names(compile_expression(expression)) if _is_readable(expression) else None
    except BadExpression:
        return frozenset()
    return names or frozenset()


def _is_readable(expression: Any) -> bool:
    """Whether it is worth parsing: the schema has complained about everything else."""
    return isinstance(expression, str) and 0 < len(expression) <= EXPRESSION_CHARACTERS_MAX


__all__ = ["check_workflow"]
