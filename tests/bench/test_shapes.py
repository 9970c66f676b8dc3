"""The workflows that are measured."""

from __future__ import annotations

import msgspec
import pytest

from bench.shapes import NOTHING, chain, fan, job, jobs, passing_chain, sleeping_chain
from tidemill.domain.run import RunKind
from tidemill.domain.validation import check_workflow
from tidemill.domain.workflow import TASKS_MAX, Workflow


@pytest.mark.parametrize(
    "workflow", [job(), chain(5), fan(5), passing_chain(3), sleeping_chain(4, 0.01)]
)
def test_the_measured_workflows_are_valid(workflow: Workflow) -> None:
    assert check_workflow(msgspec.to_builtins(workflow)).tasks == workflow.tasks


def test_a_fan_is_never_wider_than_a_run_may_be() -> None:
    assert len(fan(TASKS_MAX).tasks) == TASKS_MAX


def test_jobs_are_what_the_api_makes_of_posts() -> None:
    [first, second] = jobs(2)

    assert first is second
    assert first.kind is RunKind.JOB
    assert [task.executor for task in first.workflow.tasks] == [NOTHING]
