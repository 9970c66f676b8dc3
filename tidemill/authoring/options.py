"""What can be said about a task or a workflow beside its function."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, TypeAlias, TypedDict

from tidemill.domain.problems import did_you_mean
from tidemill.domain.workflow import RetryPolicy, Timeouts, TriggerRule

Duration: TypeAlias = float | timedelta
"""Seconds, or a timedelta."""


class TaskOptions(TypedDict, total=False):
    """Options of `@task(...)` and `.options(...)`."""

    name: str  # what its ids in workflows begin with; the function's name without it
    id: str  # its id in the workflow, for one call
    retry: RetryPolicy
    retries: int  # short for RetryPolicy(max_retries=...)
    timeout: Duration  # of one attempt
    timeouts: Timeouts
    queue: str
    labels: dict[str, str]
    priority: int
    trigger: TriggerRule | str
    isolation: Literal["thread", "process"]
    description: str


class WorkflowOptions(TypedDict, total=False):
    """Options of `@workflow(...)`; retry and retries are for tasks that do not say it."""

    name: str
    description: str
    labels: dict[str, str]
    timeout: Duration  # of a whole run
    on_failure: Literal["continue", "stop"]
    retry: RetryPolicy
    retries: int


def check_options(given: Mapping[str, Any], known: type, what: str) -> None:
    """TypeError for options that do not exist or contradict each other."""
    names = list(known.__annotations__)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
            raise TypeError(f"{what}: there is no option {name!r}{hint}")
    for one, other in (("retry", "retries"), ("timeout", "timeouts")):
        if one in given and other in given:
            raise TypeError(f"{what}: give {one} or {other}, not both")


def retry_policy(options: Mapping[str, Any]) -> RetryPolicy | None:
    """The retry policy that the options ask for, if they do."""
    if "retries" in options:
        return RetryPolicy(max_retries=options["retries"])
    policy: RetryPolicy | None = options.get("retry")
    return policy


def timeouts(options: Mapping[str, Any]) -> Timeouts:
    """The timeouts that the options ask for."""
    given: Timeouts | None = options.get("timeouts")
    if given is not None:
        return given
    limit = options.get("timeout")
    return Timeouts(attempt_seconds=None if limit is None else seconds(limit))


def seconds(duration: Duration) -> float:
    """A duration as definitions have it."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


__all__ = [
    "Duration",
    "TaskOptions",
    "WorkflowOptions",
    "check_options",
    "retry_policy",
    "seconds",
    "timeouts",
]
