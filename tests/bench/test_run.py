"""How `bench/run.py` begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "bench" / "run.py"


def test_without_the_tests_tools_it_says_how_to_get_them() -> None:
    # -S leaves out everything that is installed.
    command = [sys.executable, "-S", str(RUN), "--help"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert ended.stderr == "error: bench needs what tests need: run `make setup` first\n"
