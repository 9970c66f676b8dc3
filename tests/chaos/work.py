"""The tasks of the chaos, imported by workers: each body leaves a mark of its own execution.

A mark is one line, appended in one write by the process that runs the body: what a task did outside
is known even if nobody ever hears of its outcome.
"""

from __future__ import annotations

import json
import os
import time

from tidemill.sdk.context import context

MODULUS = 1_000_003
MARKS = "TIDEMILL_CHAOS_MARKS"
"""The environment variable that names the file of the marks."""


def step(value: int, by: int) -> int:
    """A number that only the right parent's result leads to."""
    mark()
    return mix(value, by)


def join(**parts: int) -> int:
    """What all parents returned, in one number."""
    mark()
    return mix_all(parts)


def slow_step(value: int, by: int, seconds: float) -> int:
    """Long enough to be interrupted."""
    mark()
    time.sleep(seconds)
    return mix(value, by)


def flaky_step(value: int, by: int, failures: int) -> int:
    """Fails on its first attempts."""
    mark()
    if context().attempt <= failures:
        raise RuntimeError(f"attempt {context().attempt} fails as it was told to")
    return mix(value, by)


def doomed_step() -> None:
    """Fails whenever it is tried."""
    mark()
    raise RuntimeError("fails as it was told to")


def wait_for_cancel(seconds: float) -> str:
    """Runs until somebody cancels it, or for much longer than anyone would wait."""
    mark()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        context().raise_if_cancelled()
        time.sleep(0.02)
    return "nobody cancelled it"


def mix(value: int, by: int) -> int:
    """What `step` returns."""
    return (value * 31 + by) % MODULUS


def mix_all(parts: dict[str, int]) -> int:
    """What `join` returns."""
    total = 0
    for name in sorted(parts):
        total = mix(total, parts[name])
    return total


def mark() -> None:
    current = context()
    token = current.token
    line = [token.run_id, token.position, token.epoch, current.attempt, os.getpid()]
    text = json.dumps([*line, current.idempotency_key, round(time.time(), 3)]) + "\n"
    marks = os.open(os.environ[MARKS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(marks, text.encode())
    finally:
        os.close(marks)
