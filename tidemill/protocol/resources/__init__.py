"""Everything that travels over HTTP under /v1, shared by the server and its clients."""

from tidemill.protocol.resources.bulk import BulkItem, BulkView
from tidemill.protocol.resources.dead_letters import (
    DeadLettersQuery,
    DeadLetterView,
    GroupsQuery,
    GroupView,
    ReplayedView,
    ReplayMany,
)
from tidemill.protocol.resources.events import EventsQuery, EventView, GapView
from tidemill.protocol.resources.jobs import JobsQuery, JobView, StartJob
from tidemill.protocol.resources.problems import ProblemItem, ProblemView
from tidemill.protocol.resources.runs import (
    ProgressView,
    ResultView,
    RetriedView,
    RunKind,
    RunQuery,
    RunsQuery,
    RunView,
    StartedView,
    StartRun,
    WaitQuery,
    WaitReason,
)
from tidemill.protocol.resources.tasks import AttemptView, TaskDetails, TasksQuery, TaskView
from tidemill.protocol.resources.values import ErrorView, Page, Time
from tidemill.protocol.resources.workers import OverviewView, QueueView, RateView, WorkerView
from tidemill.protocol.resources.workflows import (
    DeployedView,
    ValidatedView,
    VersionsQuery,
    VersionView,
    WorkflowsQuery,
    WorkflowView,
)

__all__ = [
    "AttemptView",
    "BulkItem",
    "BulkView",
    "DeadLetterView",
    "DeadLettersQuery",
    "DeployedView",
    "ErrorView",
    "EventView",
    "EventsQuery",
    "GapView",
    "GroupView",
    "GroupsQuery",
    "JobView",
    "JobsQuery",
    "OverviewView",
    "Page",
    "ProblemItem",
    "ProblemView",
    "ProgressView",
    "QueueView",
    "RateView",
    "ReplayMany",
    "ReplayedView",
    "ResultView",
    "RetriedView",
    "RunKind",
    "RunQuery",
    "RunView",
    "RunsQuery",
    "StartJob",
    "StartRun",
    "StartedView",
    "TaskDetails",
    "TaskView",
    "TasksQuery",
    "Time",
    "ValidatedView",
    "VersionView",
    "VersionsQuery",
    "WaitQuery",
    "WaitReason",
    "WorkerView",
    "WorkflowView",
    "WorkflowsQuery",
]
