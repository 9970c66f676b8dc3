"""Memory of processes with their children."""

from __future__ import annotations

import os
import signal
import subprocess

from bench.memory import memory_of

PARENT = ["sh", "-c", "sleep 60 & echo begun; wait"]


def test_children_count_too() -> None:
    with subprocess.Popen(PARENT, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()

        memory = memory_of([parent.pid])

        os.killpg(parent.pid, signal.SIGKILL)
    assert memory.processes == 2
    assert 0 < memory.resident <= memory.rss
