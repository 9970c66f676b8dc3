"""A workflow as data: what YAML, JSON, HTTP and Python authoring all say, in one shape."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

NAME_CHARACTERS_MAX = 128
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
LABEL_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"
LABEL_VALUE_PATTERN = r"^[A-Za-z0-9._-]*$"
TITLE_CHARACTERS_MAX = 256
TASKS_MAX = 100_000
RETRIES_MAX = 1_000
PAYLOAD = "payload"
"""The input of a task, and of a job, that carries what its executor is given."""
OUTPUT_ID = "$output"
"""The node that evaluates the workflow's `output`; no task of a user can have this id."""

Name: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX, pattern=NAME_PATTERN)
]
Labels: TypeAlias = dict[
    Annotated[str, Meta(min_length=1, max_length=63, pattern=LABEL_NAME_PATTERN)],
    Annotated[str, Meta(max_length=63, pattern=LABEL_VALUE_PATTERN)],
]
Expression: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=2_000, description="A JMESPath expression")
]
Title: TypeAlias = Annotated[str, Meta(max_length=TITLE_CHARACTERS_MAX)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=31_536_000)]


class TriggerRule(StrEnum):
    """What the endings of a task's parents must be like for it to run."""

    ALL_SUCCEEDED = "all_succeeded"  # the default: every parent succeeded
    NONE_FAILED = "none_failed"  # every parent succeeded or was skipped
    ALL_DONE = "all_done"  # every parent ended, however
    ONE_SUCCEEDED = "one_succeeded"  # at least one parent succeeded
    ONE_FAILED = "one_failed"  # at least one parent failed, or could not run for a failure
    ALL_FAILED = "all_failed"  # no parent succeeded or was skipped


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a failed attempt is followed by another one."""

    max_retries: Annotated[int, Meta(ge=0, le=RETRIES_MAX)] = 3
    base_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 1.0
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    cap_seconds: Annotated[float, Meta(ge=0, le=604_800)] = 60.0
    jitter: Annotated[float, Meta(ge=0, le=1)] | Literal["full"] = 0.1
    final_errors: tuple[str, ...] = ()
    max_losses: Annotated[int, Meta(ge=0, le=1_000)] = 20


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long things may take. What is not given has no limit."""

    attempt_seconds: Seconds | None = None
    queue_seconds: Seconds | None = None
    heartbeat_seconds: Seconds | None = None


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one input of a task comes from: exactly one of all these but `path`.

    `input` is an expression over the run's input; `result` is the id of a parent, with `path` an
    expression over its result (the whole result where it is left out); `secret` is a name that
    the worker looks up; `list` and `object` are put together from other sources.
    """

    const: Any | UnsetType = UNSET
    input: Expression | UnsetType = UNSET
    result: Name | UnsetType = UNSET
    path: Expression | UnsetType = UNSET
    secret: Name | UnsetType = UNSET
    list: tuple[InputSource, ...] | UnsetType = UNSET
    object: dict[str, InputSource] | UnsetType = UNSET


# A plain scalar or list is a constant; a mapping says where the value comes from.
InputSource: TypeAlias = Source | str | int | float | bool | list[Any] | None


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task of a workflow."""

    id: Name
    executor: Name
    params: dict[str, Any] = {}
    depends_on: tuple[Name, ...] = ()
    inputs: dict[str, InputSource] = {}
    retry: RetryPolicy = RetryPolicy()
    timeouts: Timeouts = Timeouts()
    queue: Name = "default"
    labels: Labels = {}
    priority: Annotated[int, Meta(ge=-100, le=100)] = 0
    trigger: TriggerRule = TriggerRule.ALL_SUCCEEDED
    title: Title = ""
    description: Annotated[str, Meta(max_length=4_000)] = ""


class Workflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named DAG of tasks."""

    name: Name
    tasks: Annotated[tuple[TaskSpec, ...], Meta(min_length=1, max_length=TASKS_MAX)]
    title: Title = ""
    description: Annotated[str, Meta(max_length=4_000)] = ""
    labels: Labels = {}
    input: dict[str, Any] = {}
    output: Expression | None = None
    timeout_seconds: Seconds | None = None
    on_failure: Literal["continue", "stop"] = "continue"
