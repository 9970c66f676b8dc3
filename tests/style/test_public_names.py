"""The public surface: what `import tidemill` offers, and what it must not drag in."""

from __future__ import annotations

import subprocess
import sys

import tidemill

PUBLIC = [
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
HEAVY = ("asyncpg", "click", "grpc", "httpx", "jsonschema_rs", "rich", "sqlite3", "yaml")


def test_every_public_name_exists() -> None:
    assert [name for name in tidemill.__all__ if not hasattr(tidemill, name)] == []


def test_the_public_surface_changes_only_on_purpose() -> None:
    assert list(tidemill.__all__) == PUBLIC


def test_authoring_drags_in_nothing_heavy() -> None:
    program = f"import sys, tidemill; print([m for m in {HEAVY!r} if m in sys.modules])"

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "[]"
