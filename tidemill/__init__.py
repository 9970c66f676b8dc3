"""Tidemill: durable workflows. What user code imports, and nothing that is slow to import."""

from __future__ import annotations

from tidemill.authoring.errors import WorkflowFailed
from tidemill.authoring.secrets import secret
from tidemill.authoring.tasks import task
from tidemill.authoring.workflows import workflow
from tidemill.domain.workflow import (
    RetryPolicy,
    Source,
    TaskSpec,
    Timeouts,
    TriggerRule,
    Workflow,
)
from tidemill.sdk.context import Context, FinalError, RetryLater, TaskCancelled, context

__version__ = "0.1.0"

__all__ = [
    "Context",
    "FinalError",
    "RetryLater",
    "RetryPolicy",
    "Source",
    "TaskCancelled",
    "TaskSpec",
    "Timeouts",
    "TriggerRule",
    "Workflow",
    "WorkflowFailed",
    "context",
    "secret",
    "task",
    "workflow",
]
