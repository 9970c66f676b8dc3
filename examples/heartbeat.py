"""The function of heartbeat.yaml: long work that shows it is alive."""

from __future__ import annotations

import time

from tidemill import context


def copy(parts: int) -> str:
    """Each call of `progress` is a heartbeat; `heartbeat` alone says nothing else."""
    task = context()
    if task.attempt == 1:
        hang_until_stopped()
    for part in range(1, parts + 1):
        task.raise_if_cancelled()
        time.sleep(0.1)
        task.progress(part / parts, f"part {part} of {parts}")
    return f"{parts} parts, attempt {task.attempt}"


def hang_until_stopped() -> None:
    """A thread cannot be killed: code that may take long looks now and then."""
    task = context()
    task.logger.warning("no sign of life from here on")
    while True:
        task.raise_if_cancelled()
        time.sleep(0.05)
