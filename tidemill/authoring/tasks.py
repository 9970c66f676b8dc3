"""`@task`: a function that stays a function, and becomes a task where a workflow calls it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import (
    Any,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from tidemill.authoring.building import Step, as_plain_python, current_builder, plain_workflow
from tidemill.authoring.options import TaskOptions, check_options
from tidemill.authoring.placeholders import Placeholder
from tidemill.sdk.authored import AuthoredTask, plain_function

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_UNNAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


class TaskFunction(AuthoredTask, Generic[P, R_co]):
    """A task. Called inside a workflow function it becomes a part of the DAG, elsewhere it runs."""

    def __init__(
        self,
        function: Callable[P, Any],
        options: Mapping[str, Any],
        after: tuple[Placeholder, ...] = (),
    ) -> None:
        functools.update_wrapper(self, function)  # first: functions may have attributes too
        check_options(options, TaskOptions, f"task {function.__qualname__}")
        _check_parameters(function)
        self.function: Callable[P, Any] = function
        self.name = target_of(function)
        self._options = dict(options)
        self._after = after
        self._stem = str(options.get("name") or _stem(function))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the plain function; inside a workflow function, stand for its result."""
        builder = current_builder()
        if builder is not None:
            return cast("R_co", builder.call(self._step(), args, kwargs))
        workflow = plain_workflow()
        if workflow is None:
            return cast("R_co", self.function(*args, **kwargs))
        if inspect.iscoroutinefunction(self.function):
            text = f"task {self._stem} is async, so {workflow}(...) cannot run as plain Python"
            raise TypeError(f"{text}: use {workflow}.run(...)")
        with as_plain_python(None):
            return cast("R_co", self.function(*args, **kwargs))

    def options(self, **options: Unpack[TaskOptions]) -> Self:
        """The same task with other options: those not named stay as they are."""
        return type(self)(self.function, _merged(self._options, options), self._after)

    def after(self, *results: object) -> Self:
        """The same task, called only when the tasks that return these have ended."""
        return type(self)(self.function, self._options, (*self._after, *cast("Any", results)))

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def _step(self) -> Step:
        return Step(
            function=self.function,
            name=self.name,
            stem=self._stem,
            options=self._options,
            after=self._after,
        )


class TaskDecorator(Protocol):
    """What `@task(...)` with options returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R]: ...


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFunction[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> TaskFunction[P, R]: ...
@overload
def task(**options: Unpack[TaskOptions]) -> TaskDecorator: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a task: `@task`, or `@task(retries=5, timeout=30)`."""
    if function is not None:
        return TaskFunction(plain_function(function), options)
    return lambda plain: TaskFunction(plain_function(plain), options)


def target_of(function: Callable[..., Any]) -> str:
    """`module:function`, as a worker that imports the same file finds it."""
    return f"{_module_name(function)}:{function.__qualname__}"


def _module_name(function: Callable[..., Any]) -> str:
    name = function.__module__
    if name != "__main__":
        return name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else name


def _stem(function: Callable[..., Any]) -> str:
    name = function.__name__.lstrip("_")
    if not name.isidentifier():
        raise TypeError(f"{function.__name__} has no name to be called by: give @task(name=...)")
    return name


def _check_parameters(function: Callable[..., Any]) -> None:
    unnamed = [
        str(each)
        for each in inspect.signature(function).parameters.values()
        if each.kind in _UNNAMED
    ]
    if unnamed:
        what = ", ".join(unnamed)
        raise TypeError(f"task {function.__qualname__}: {what} cannot be passed by name")


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The new options win, also over another way to say the same."""
    rivals = {"retry": "retries", "retries": "retry", "timeout": "timeouts", "timeouts": "timeout"}
    kept = {name: value for name, value in old.items() if rivals.get(name) not in new}
    return kept | dict(new)


__all__ = ["TaskDecorator", "TaskFunction", "target_of", "task"]
