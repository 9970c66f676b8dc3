"""References of a workflow: where the inputs of a task and the output of a run come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.expressions import (
    BadExpression,
    EvaluationFailed,
    compile_expression,
    root_names,
)
from tidemill.domain.workflow import InputSource, Source, TaskSpec


def parents_of(task: TaskSpec) -> tuple[str, ...]:
    """The tasks that must end before this one: `depends_on`, then those whose result it reads."""
    named = dict.fromkeys(task.depends_on)
    for source in task.inputs.values():
        if isinstance(source, Source) and source.result is not UNSET:
            named[source.result] = None
    return tuple(named)


def resolve_inputs(
    inputs: Mapping[str, InputSource], run_input: Any, results: Mapping[str, Any]
) -> dict[str, Any]:
    """The value of each input of a task; a parent without a result counts as null.

    Every expression that fails is named in the InvalidInput.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, source in inputs.items():
        try:
            values[name] = _resolve(name, source, run_input, results)
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


def _resolve(name: str, source: InputSource, run_input: Any, results: Mapping[str, Any]) -> Any:
    if not isinstance(source, Source):
        return source
    if source.const is not UNSET:
        return source.const
    if source.input is not UNSET:
        return _evaluate(source.input, run_input, f"inputs.{name}.input")
    assert source.result is not UNSET, "validation leaves exactly one source"
    result = results.get(source.result)
    if source.path is UNSET:
        return result
    return _evaluate(source.path, result, f"inputs.{name}.path")


def _evaluate(expression: str, data: Any, path: str) -> Any:
    try:
        return compile_expression(expression).evaluate(data)
    except BadExpression as error:
        raise _invalid(path, str(error), "BAD_EXPRESSION") from error
    except EvaluationFailed as error:
        raise _invalid(path, f"{expression}: {error}", "EVALUATION_FAILED") from error


def _invalid(path: str, message: str, code: str) -> InvalidInput:
    return InvalidInput([Problem(path=path, message=message, code=code)])


__all__ = ["evaluate_output", "parents_of", "referenced_tasks", "resolve_inputs"]
