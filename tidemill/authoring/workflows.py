"""`@workflow`: a function that describes a DAG by calling tasks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from tidemill.authoring.building import Builder, as_plain_python, describing
from tidemill.authoring.options import WorkflowOptions, check_options, retry_policy, seconds
from tidemill.authoring.signatures import Parameters, return_type
from tidemill.authoring.sources import output_of, problems_of, references_in
from tidemill.authoring.submitting import (
    RunHandle,
    SubmitOptions,
    deploy,
    submit,
    submit_async,
)
from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.domain.workflow import RetryPolicy, Workflow
from tidemill.sdk.authored import AuthoredWorkflow
from tidemill.sdk.typed_values import from_json

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class WorkflowFunction(AuthoredWorkflow, Generic[P, R_co]):
    """A workflow. Calling it runs its tasks as plain Python; `run` and `submit` run it as a DAG."""

    def __init__(
        self,
        function: Callable[P, R_co],
        options: Mapping[str, Any],
        submitting: SubmitOptions | None = None,
    ) -> None:
        functools.update_wrapper(self, function)  # first: functions may have attributes too
        check_options(options, WorkflowOptions, f"workflow {function.__qualname__}")
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"workflow {function.__qualname__}: write def, not async def: "
                "it only describes what happens, its tasks may be async"
            )
        self.function = function
        self.name: str = options.get("name") or function.__name__.lstrip("_")
        self._options = dict(options)
        self._submit: SubmitOptions = submitting or {}
        self._parameters = Parameters(function)
        self._described: tuple[Workflow, Mapping[str, Callable[..., Any]]] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Plain Python: every task simply runs. Inside another workflow its tasks become part."""
        with as_plain_python(self.function.__name__):
            return self.function(*args, **kwargs)

    @property
    def definition(self) -> Workflow:
        """The workflow as data; InvalidWorkflow with everything that is wrong with it."""
        return self._description[0]

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The plain functions of its tasks, by `module:function`."""
        return self._description[1]

    def input_of(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """The arguments as the JSON input of a run."""
        return self._parameters.values(args, kwargs)

    def result_of(self, value: Any) -> R_co:
        """The JSON result of a run as the type that the function says it returns."""
        result: R_co = from_json(value, return_type(self.function))
        return result

    def run(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run it in this process, without files or servers; WorkflowFailed when a task fails."""
        from tidemill.authoring.in_process import run_blocking

        value = run_blocking(self.definition, self.input_of(*args, **kwargs), self.functions)
        return self.result_of(value)

    async def run_async(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """The same, for code that runs in an event loop."""
        from tidemill.authoring.in_process import run

        return self.result_of(
            await run(self.definition, self.input_of(*args, **kwargs), self.functions)
        )

    def options(self, **options: Unpack[SubmitOptions]) -> Self:
        """The same workflow with another way to submit it: its key, its labels, its server."""
        check_options(options, SubmitOptions, f"workflow {self.name}")
        return type(self)(self.function, self._options, {**self._submit, **options})

    def deploy(self) -> Any:
        """Make it the latest version of its name on the server, unless it is already."""
        return deploy(self, self._submit)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Start a run on a server, and return what follows it."""
        return submit(self, self.input_of(*args, **kwargs), self._submit)

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """The same, for code that runs in an event loop."""
        return await submit_async(self, self.input_of(*args, **kwargs), self._submit)

    def __repr__(self) -> str:
        return f"<workflow {self.name}>"

    @property
    def _description(self) -> tuple[Workflow, Mapping[str, Callable[..., Any]]]:
        if self._described is None:
            try:
                self._described = self._describe()
            except InvalidWorkflow as error:
                error.add_note(f"in {self._file}")  # lines alone say little in a traceback
                raise
        return self._described

    def _describe(self) -> tuple[Workflow, Mapping[str, Callable[..., Any]]]:
        from tidemill.domain.validation import check_workflow

        builder = Builder(retry=retry_policy(self._options) or RetryPolicy())
        returned = self._called(builder)
        builder.complain(self._return_problems(returned))
        if builder.problems:
            raise InvalidWorkflow(builder.problems, source=self._file)
        limit = self._options.get("timeout")
        described = Workflow(
            name=self.name,
            tasks=tuple(builder.tasks.values()),
            description=self._options.get("description", _first_line(self.function)),
            labels=dict(self._options.get("labels", {})),
            input=self._parameters.schema(),
            output=None if returned is None else output_of(returned),
            timeout_seconds=None if limit is None else seconds(limit),
            on_failure=self._options.get("on_failure", "continue"),
        )
        return check_workflow(described), builder.functions

    def _called(self, builder: Builder) -> Any:
        given = {name: builder.given(name, kind) for name, kind in self._parameters.types.items()}
        describe: Callable[..., Any] = self.function
        try:
            with describing(builder):
                returned = describe(**given)
        except InvalidWorkflow as error:
            raise InvalidWorkflow([*builder.problems, *error.problems], source=self._file) from None
        if not builder.tasks:
            builder.problems.append(
                Problem(path=self.name, message="calls no task", code="REQUIRED")
            )
        return returned

    def _return_problems(self, returned: Any) -> Iterator[Problem]:
        line = self.function.__code__.co_firstlineno
        for reference in references_in(returned):
            if reference.task is None:
                message = f"{reference.label} is no result: return what tasks return"
                yield Problem(path="return", message=message, code="BAD_OUTPUT", line=line)
                return
        if returned is not None:
            for found in problems_of("return", returned, return_type(self.function)):
                yield Problem(path=found.path, message=found.message, code=found.code, line=line)

    @property
    def _file(self) -> str:
        return inspect.getsourcefile(self.function) or ""


class WorkflowDecorator(Protocol):
    """What `@workflow(...)` with options returns."""

    def __call__(self, function: Callable[P, R], /) -> WorkflowFunction[P, R]: ...


@overload
def workflow(function: Callable[P, R], /) -> WorkflowFunction[P, R]: ...
@overload
def workflow(**options: Unpack[WorkflowOptions]) -> WorkflowDecorator: ...
def workflow(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a workflow: `@workflow`, or `@workflow(name="nightly", timeout=3600)`."""
    if function is not None:
        return WorkflowFunction(function, options)
    return lambda plain: WorkflowFunction(plain, options)


def _first_line(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function)
    return text.splitlines()[0] if text else ""


__all__ = ["WorkflowDecorator", "WorkflowFunction", "workflow"]
