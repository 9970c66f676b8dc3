"""The steps of the milling example."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tidemill import context

STEPS = 25


def receive() -> dict[str, int]:
    """What has arrived, in kilos."""
    return {"wheat": 120, "rye": 80, "oats": 40}


def grind(grain: str, kilos: int, seconds: float, mailbox: str) -> dict[str, Any]:
    """Grind slowly, and say how far it is. With a mailbox, leave a note on which process grinds."""
    task = context()
    if mailbox:
        Path(mailbox, f"{grain}.{task.attempt}").write_text(str(os.getpid()))
    for step in range(STEPS):
        task.raise_if_cancelled()
        task.progress(step / STEPS, f"{kilos * step // STEPS} of {kilos} kg")
        time.sleep(seconds / STEPS)
    print(f"{kilos} kg of {grain} ground in process {os.getpid()}")
    return {"kilos": kilos, "process": os.getpid(), "attempt": task.attempt}


def blend(wheat: dict[str, Any], rye: dict[str, Any], oats: dict[str, Any]) -> dict[str, Any]:
    """Mix what the three branches made."""
    parts = {"wheat": wheat, "rye": rye, "oats": oats}
    return {
        "flour_kilos": sum(part["kilos"] for part in parts.values()),
        "ground_at_attempt": {grain: part["attempt"] for grain, part in parts.items()},
    }
