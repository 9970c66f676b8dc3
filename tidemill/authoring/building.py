"""Describing a workflow: while its function runs, each call of a task becomes a task of the DAG."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tidemill.authoring.options import retry_policy, timeouts
from tidemill.authoring.placeholders import Placeholder, Reference, reference_of
from tidemill.authoring.places import problem
from tidemill.authoring.sources import problems_of, references_in, source_of
from tidemill.domain.errors import Problem
from tidemill.domain.problems import did_you_mean
from tidemill.domain.workflow import RetryPolicy, TaskSpec, TriggerRule
from tidemill.sdk.typed_values import annotations_of

EXECUTOR = "python"
PROBLEMS_MAX = 100

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A task as it is called: its function, its options, and what it comes after."""

    function: Callable[..., Any]
    name: str  # module:function
    stem: str  # what its id begins with
    options: Mapping[str, Any]
    after: tuple[Placeholder, ...] = ()


@dataclass(slots=True)
class Builder:
    """The workflow that is being described."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    tasks: dict[str, TaskSpec] = field(default_factory=dict)
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def call(self, step: Step, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Placeholder:
        """Add a task, and return what stands for its result."""
        name = self._fresh_id(step)
        signature = inspect.signature(step.function)
        arguments = dict(self._bound(name, signature, args, kwargs))
        hints = annotations_of(step.function)
        for parameter, value in arguments.items():
            place = f"{name}.{parameter}"
            self.complain(self._foreign(place, value))
            self.complain(problems_of(place, value, hints.get(parameter, Any)))
        self.tasks[name] = self._spec(name, step, arguments)
        self.functions[step.name] = step.function
        return Placeholder(Reference(owner=self, task=name, kind=hints.get("return", Any)))

    def given(self, name: str, kind: Any) -> Placeholder:
        """What stands for a parameter of the workflow."""
        return Placeholder(Reference(owner=self, task=None, path=(name,), kind=kind))

    def complain(self, problems: Iterator[Problem]) -> None:
        """Keep problems to tell them all at the end."""
        self.problems.extend(found for found, _ in zip(problems, range(PROBLEMS_MAX), strict=False))

    def _fresh_id(self, step: Step) -> str:
        wished: str = step.options.get("id", step.stem)
        if wished not in self.tasks:
            return wished
        if "id" in step.options:
            message = f"{wished!r} is the id of an earlier call, choose another"
            self.problems.append(problem(wished, message, "DUPLICATE_ID"))
        number = 2
        while f"{wished}_{number}" in self.tasks:
            number += 1
        return f"{wished}_{number}"

    def _bound(
        self,
        name: str,
        signature: inspect.Signature,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Iterator[tuple[str, Any]]:
        """Arguments by the name of their parameter, in the order of the signature."""
        parameters = signature.parameters
        by_place = [each.name for each in parameters.values() if each.kind is _BY_NAME[0]]
        given = dict(zip(by_place, args, strict=False))
        if len(args) > len(by_place):
            message = f"takes {len(by_place)} positional arguments, {len(args)} are given"
            self.problems.append(problem(name, message, "UNKNOWN_ARGUMENT"))
        twice = given.keys() & kwargs.keys()
        for parameter in sorted(twice):
            text = f"{parameter!r} is given twice"
            self.problems.append(problem(name, text, "UNKNOWN_ARGUMENT"))
        given.update(kwargs)
        self.complain(_misnamed(name, parameters, given))
        open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        known = [each.name for each in parameters.values() if each.kind in _BY_NAME]
        yield from ((each, given[each]) for each in known if each in given)
        if open_ended:
            yield from ((each, value) for each, value in given.items() if each not in parameters)

    def _foreign(self, place: str, value: Any) -> Iterator[Problem]:
        for reference in references_in(value):
            if reference.owner is not self:
                message = f"{reference.label} belongs to another workflow: call its task here"
                yield problem(place, message, "FOREIGN_RESULT")

    def _spec(self, name: str, step: Step, arguments: Mapping[str, Any]) -> TaskSpec:
        options = step.options
        params: dict[str, Any] = {"function": step.name}
        if options.get("isolation", "thread") != "thread":
            params["isolation"] = options["isolation"]
        return TaskSpec(
            id=name,
            executor=EXECUTOR,
            params=params,
            depends_on=tuple(self._after(name, step)),
            inputs={each: self._source(name, each, value) for each, value in arguments.items()},
            retry=retry_policy(options) or self.retry,
            timeouts=timeouts(options),
            queue=options.get("queue", "default"),
            labels=dict(options.get("labels", {})),
            priority=options.get("priority", 0),
            trigger=self._trigger(name, options.get("trigger", TriggerRule.ALL_SUCCEEDED)),
            description=options.get("description", ""),
        )

    def _source(self, name: str, parameter: str, value: Any) -> Any:
        try:
            return source_of(value)
        except (TypeError, ValueError) as error:
            self.problems.append(problem(f"{name}.{parameter}", str(error), "NOT_JSON"))
            return None

    def _trigger(self, name: str, given: str) -> TriggerRule:
        try:
            return TriggerRule(given)
        except ValueError:
            known = ", ".join(TriggerRule)
            text = f"there is no trigger {given!r}; there are: {known}"
            self.problems.append(problem(f"{name}.trigger", text, "NOT_ALLOWED"))
            return TriggerRule.ALL_SUCCEEDED

    def _after(self, name: str, step: Step) -> Iterator[str]:
        seen: set[str] = set()
        for result in step.after:
            reference = reference_of(result)
            if reference is None or reference.task is None or reference.owner is not self:
                message = "after() takes what tasks of this workflow return"
                self.problems.append(problem(name, message, "BAD_ORDER"))
            elif reference.task not in seen:
                seen.add(reference.task)
                yield reference.task


def _misnamed(
    name: str, parameters: Mapping[str, inspect.Parameter], given: Mapping[str, Any]
) -> Iterator[Problem]:
    named = [each.name for each in parameters.values() if each.kind in _BY_NAME]
    if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        for argument in given:
            if argument not in named:
                hint = did_you_mean(argument, named) or f"; it has: {', '.join(named) or 'none'}"
                text = f"has no parameter {argument!r}{hint}"
                yield problem(name, text, "UNKNOWN_ARGUMENT")
    for each in named:
        if each not in given and parameters[each].default is inspect.Parameter.empty:
            yield problem(name, f"the argument {each!r} is missing", "MISSING_ARGUMENT")


_current: contextvars.ContextVar[Builder | None] = contextvars.ContextVar(
    "tidemill_builder", default=None
)


def current_builder() -> Builder | None:
    """The workflow that is being described right now, if one is."""
    return _current.get()


@contextmanager
def describing(builder: Builder) -> Iterator[None]:
    """Let calls of tasks become tasks of this workflow."""
    before = _current.set(builder)
    try:
        yield
    finally:
        _current.reset(before)


_plain: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "tidemill_plain_workflow", default=None
)


def plain_workflow() -> str | None:
    """The workflow whose function runs as plain Python right now, if one does."""
    return _plain.get()


@contextmanager
def as_plain_python(workflow: str | None) -> Iterator[None]:
    """Run the function of a workflow; None for a task of it, which may call what it likes."""
    before = _plain.set(workflow)
    try:
        yield
    finally:
        _plain.reset(before)


__all__ = [
    "Builder",
    "Step",
    "as_plain_python",
    "current_builder",
    "describing",
    "plain_workflow",
]
