"""Workflows in unit tests: run in milliseconds, on virtual time, with failures on demand."""

from tidemill.sdk.context import FakeVoice, fake_context
from tidemill.testing.clock import VirtualClock
from tidemill.testing.rigging import InjectedFailure, TaskCall
from tidemill.testing.runs import TestRun, run

__all__ = [
    "FakeVoice",
    "InjectedFailure",
    "TaskCall",
    "TestRun",
    "VirtualClock",
    "fake_context",
    "run",
]
