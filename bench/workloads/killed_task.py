"""The task of the workload `recover`, imported by workers."""

from __future__ import annotations

import os
import time
from pathlib import Path


def wait_to_be_killed(marks: str) -> None:
    """Say when it began; the first attempt then waits for its end."""
    path = Path(marks)
    is_first = not path.exists()
    with path.open("a") as file:
        file.write(f"{time.time():.6f} {os.getpid()}\n")
    time.sleep(60 if is_first else 0)
