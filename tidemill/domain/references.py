"""References of a workflow: where the inputs of a task and the output of a run come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.expressions import (
    BadExpression,
    EvaluationFailed,
    compile_expression,
    root_names,
)
from tidemill.domain.masking import MASK
from tidemill.domain.workflow import InputSource, Source, TaskSpec


def parents_of(task: TaskSpec) -> tuple[str, ...]:
    """The tasks that must end before this one: `depends_on`, then those whose result it reads."""
    named = dict.fromkeys(task.depends_on)
    named.update(dict.fromkeys(results_read(task)))
    return tuple(named)


def results_read(task: TaskSpec) -> Iterator[str]:
    """The ids of the tasks whose results this one reads, in the order of its inputs."""
    for source in task.inputs.values():
        yield from _results_in(source)


def _results_in(source: InputSource) -> Iterator[str]:
    if not isinstance(source, Source):
        return
    if source.result is not UNSET:
        yield source.result
    for part in _parts(source):
        yield from _results_in(part)


def _parts(source: Source) -> Iterator[InputSource]:
    if source.list is not UNSET:
        yield from source.list
    if source.object is not UNSET:
        yield from source.object.values()


def secrets_read(task: TaskSpec) -> tuple[str, ...]:
    """The names of the secrets that inputs of a task ask for."""
    return tuple(dict.fromkeys(_secrets_in(list(task.inputs.values()))))


def _secrets_in(sources: Iterable[InputSource]) -> Iterator[str]:
    for source in sources:
        if isinstance(source, Source):
            if source.secret is not UNSET:
                yield source.secret
            yield from _secrets_in(_parts(source))


def resolve_inputs(
    inputs: Mapping[str, InputSource],
    run_input: Any,
    results: Mapping[str, Any],
    secret: Callable[[str], str] = lambda _: MASK,
) -> dict[str, Any]:
    """The value of each input of a task; a parent without a result counts as null.

    Every expression that fails is named in the InvalidInput. Only who runs the task finds secrets.
    """
    given = _Given(run_input, results, secret)
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, source in inputs.items():
        try:
            values[name] = _resolve(f"inputs.{name}", source, given)
        except InvalidInput as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidInput(problems)
    return values


def evaluate_output(expression: str, results: Mapping[str, Any]) -> Any:
    """The result of a run: an expression over the results of its tasks by id."""
    return _evaluate(expression, dict(results), "output")


def referenced_tasks(expression: str) -> frozenset[str] | None:
    """The tasks whose results an output expression reads; None when it may read all of them."""
    try:
        return root_names(compile_expression(expression))
    except BadExpression as error:
        raise _invalid("output", str(error), "BAD_EXPRESSION") from error


class _Given(NamedTuple):
    """What sources are resolved with."""

    run_input: Any
    results: Mapping[str, Any]
    secret: Callable[[str], str]


def _resolve(place: str, source: InputSource, given: _Given) -> Any:
    if not isinstance(source, Source):
        return source
    if source.const is not UNSET:
        return source.const
    if source.input is not UNSET:
        return _evaluate(source.input, given.run_input, f"{place}.input")
    if source.secret is not UNSET:
        return given.secret(source.secret)
    if source.list is not UNSET:
        return [
            _resolve(f"{place}.list[{index}]", part, given)
            for index, part in enumerate(source.list)
        ]
    if source.object is not UNSET:
        return {
            key: _resolve(f"{place}.object.{key}", part, given)
            for key, part in source.object.items()
        }
    assert source.result is not UNSET, "validation leaves exactly one source"
    result = given.results.get(source.result)
    if source.path is UNSET:
        return result
    return _evaluate(source.path, result, f"{place}.path")


def _evaluate(expression: str, data: Any, path: str) -> Any:
    try:
        return compile_expression(expression).evaluate(data)
    except BadExpression as error:
        raise _invalid(path, str(error), "BAD_EXPRESSION") from error
    except EvaluationFailed as error:
        raise _invalid(path, f"{expression}: {error}", "EVALUATION_FAILED") from error


def _invalid(path: str, message: str, code: str) -> InvalidInput:
    return InvalidInput([Problem(path=path, message=message, code=code)])


__all__ = [
    "evaluate_output",
    "parents_of",
    "referenced_tasks",
    "resolve_inputs",
    "results_read",
    "secrets_read",
]
