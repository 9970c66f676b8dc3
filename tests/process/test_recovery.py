"""kill -9 of workers, of everything, and tasks that take their worker down with them."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable

import psutil
import pytest

from tests.process.commands import Shell, eventually, finish
from tidemill.domain.facts import FactType, decode_facts

STEPS = """
import ctypes, os, time
from pathlib import Path

def slow_at_first():
    marks = Path("marks")
    tries = len(marks.read_text().splitlines()) if marks.exists() else 0
    with marks.open("a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(60 if tries == 0 else 0)
    return tries + 1

def leave():
    os._exit(2)  # as a worker that cannot start would, but it has started

def fault():
    ctypes.string_at(0)

def neighbour(seconds):
    time.sleep(seconds)
    return "well"
"""

SLOW_AT_FIRST = """
name: slow
imports: [steps.py]
tasks:
  - {id: before, executor: noop}
  - id: slow
    executor: python
    params: {function: "steps:slow_at_first"}
    depends_on: [before]
  - {id: after, executor: noop, depends_on: [slow]}
output: slow
"""

CRASHING = """
name: crashing
imports: [steps.py]
tasks:
  - id: crash
    executor: python
    params: {{function: "steps:{function}"}}
    retry: {{max_losses: 1}}
  - id: neighbour
    executor: python
    params: {{function: "steps:neighbour"}}
    inputs: {{seconds: 2}}
  - {{id: after-neighbour, executor: noop, depends_on: [neighbour]}}
"""


@pytest.fixture
def slow(shell: Shell) -> Shell:
    shell.write("steps.py", STEPS)
    shell.write("slow.yaml", SLOW_AT_FIRST)
    return shell


def _facts(shell: Shell, kind: FactType) -> int:
    with sqlite3.connect(shell.folder / ".tidemill" / "tidemill.db") as database:
        rows = database.execute("SELECT facts FROM outbox").fetchall()
    database.close()
    return sum(fact.type is kind for (data,) in rows for fact in decode_facts(data))


def test_after_kill_9_of_the_worker_the_task_runs_again_and_the_run_ends_once(
    slow: Shell, record_property: Callable[[str, object], None]
) -> None:
    command = slow.start("run", "slow.yaml")
    [pid] = eventually(lambda: slow.lines("marks"))

    os.kill(int(pid), signal.SIGKILL)
    killed_at = time.monotonic()
    eventually(lambda: len(slow.lines("marks")) == 2)
    recovery = time.monotonic() - killed_at

    record_property("recovery_seconds", round(recovery, 2))
    assert recovery < 10
    ended = finish(command)
    assert ended.code == 0, ended.err + ended.out
    assert _facts(slow, FactType.WORKFLOW_COMPLETED) == 1
    assert slow.read_json("show", "latest", "slow")["task"]["losses"] == 1


def test_after_kill_9_of_everything_resume_finishes_the_run(slow: Shell) -> None:
    command = slow.start("run", "slow.yaml")
    [pid] = eventually(lambda: slow.lines("marks"))
    command.kill()
    # The worker sees that its parent is gone, and ends by itself.
    eventually(lambda: not psutil.pid_exists(int(pid)), 10)

    resumed = slow.run("resume")

    assert resumed.code == 0, resumed.err + resumed.out
    assert len(slow.lines("marks")) == 2
    assert _facts(slow, FactType.WORKFLOW_COMPLETED) == 1
    assert slow.run("resume").out == "nothing is left unfinished\n"


def test_run_says_what_was_left_and_leaves_it_alone(slow: Shell) -> None:
    slow.write("other.yaml", "name: other\ntasks: [{id: only, executor: noop}]")
    command = slow.start("run", "slow.yaml")
    eventually(lambda: slow.lines("marks"))
    command.kill()
    finish(command)

    other = slow.run("run", "other.yaml")

    assert other.code == 0
    assert "1 run left unfinished earlier" in other.err
    assert len(slow.lines("marks")) == 1
    assert slow.run("resume", "--workers", "2").code == 0
    assert {run["state"] for run in slow.read_json("runs")} == {"SUCCEEDED"}


def test_resume_names_every_run_and_tells_the_steps_of_each(slow: Shell) -> None:
    for _ in range(2):
        command = slow.start("run", "slow.yaml")
        eventually(lambda: slow.lines("marks"))
        command.kill()
        finish(command)
        (slow.folder / "marks").unlink()
    slow.write("marks", "0\n")

    resumed = slow.run("resume")

    assert resumed.code == 0, resumed.err + resumed.out
    for run in slow.read_json("runs"):
        assert f"run {run['id']} (slow)" in resumed.out
    assert resumed.out.count("after   succeeded") == 2


def test_a_source_file_that_moved_is_given_to_resume_once(slow: Shell) -> None:
    command = slow.start("run", "slow.yaml")
    eventually(lambda: slow.lines("marks"))
    command.kill()
    finish(command)
    (slow.folder / "moved").mkdir()
    (slow.folder / "steps.py").rename(slow.folder / "moved" / "steps.py")

    refused = slow.run("resume")
    resumed = slow.run("resume", "--import", "moved/steps.py")

    assert refused.code == 2
    assert "steps.py is gone: put it back, or give its new place as --import" in refused.err
    assert resumed.code == 0, resumed.err + resumed.out


@pytest.mark.parametrize("function", ["leave", "fault"])
def test_a_task_that_crashes_its_worker_fails_alone(shell: Shell, function: str) -> None:
    shell.write("steps.py", STEPS)
    shell.write("crashing.yaml", CRASHING.format(function=function))

    ended = shell.run("run", "crashing.yaml")

    assert ended.code == 1
    crash = shell.read_json("show", "latest", "crash")["task"]
    assert (crash["state"], crash["reason"], crash["losses"]) == ("FAILED", "lost", 2)
    for name in ("neighbour", "after-neighbour"):
        assert shell.read_json("show", "latest", name)["task"]["state"] == "SUCCEEDED"


def test_a_crash_in_a_process_of_its_own_hurts_nobody(shell: Shell) -> None:
    shell.write("steps.py", STEPS)
    text = CRASHING.format(function="leave").replace(
        '"steps:leave"', '"steps:leave", isolation: process'
    )
    shell.write("crashing.yaml", text.replace("max_losses: 1", "max_retries: 0"))

    ended = shell.run("run", "crashing.yaml")

    assert ended.code == 1
    crash = shell.read_json("show", "latest", "crash")["task"]
    assert (crash["state"], crash["losses"]) == ("FAILED", 0)
    assert shell.read_json("show", "latest", "neighbour")["task"]["losses"] == 0
