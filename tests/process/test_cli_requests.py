"""What a second terminal can ask of the process that owns the store."""

from __future__ import annotations

import subprocess

import pytest

from tests.process.commands import Shell, eventually, finish

PAIR = """
name: pair
imports: [steps.py]
tasks:
  - {id: wait, executor: python, params: {function: "steps:wait"}}
  - {id: pick, executor: python, params: {function: "steps:pick"}, retry: {max_retries: 0}}
"""

STEPS = """
import time
from pathlib import Path
from tidemill import context

def pick():
    return Path("fruit").read_text()

def wait():
    context().progress(0.25, "a quarter")
    Path("waiting").touch()
    while not Path("open").exists():
        time.sleep(0.01)
"""

QUEUED = """
name: queued
tasks:
  - id: slow
    executor: flaky
    params: {failure_rate: 1.0}
    retry: {max_retries: 0}
    queue: heavy
    labels: {size: big}
"""

OTHER = """
name: other
imports: [other.py]
tasks: [{id: pick, executor: python, params: {function: "other:pick"}, retry: {max_retries: 0}}]
"""


@pytest.fixture
def pair(shell: Shell) -> subprocess.Popen[str]:
    """A run with one task that waits for a file, and one that has failed for want of another."""
    shell.write("pair.yaml", PAIR)
    shell.write("steps.py", STEPS)
    shell.write("other.yaml", OTHER)
    shell.write("other.py", STEPS)
    assert shell.run("run", "other.yaml").code == 1
    command = shell.start("run", "pair.yaml")
    eventually((shell.folder / "waiting").exists)
    eventually(lambda: shell.read_json("show", "latest", "pick")["task"]["state"] == "FAILED")
    return command


def test_the_owner_replays_a_dead_letter_of_the_run_under_way(
    shell: Shell, pair: subprocess.Popen[str]
) -> None:
    shell.write("fruit", "pear")

    asked = shell.run("dead", "replay", "latest", "pick")
    (shell.folder / "open").touch()

    assert asked.code == 0, asked.err
    assert finish(pair).code == 0
    assert shell.read_json("show", "latest")["run"]["generation"] == 2


def test_the_owner_refuses_a_replay_that_its_workers_have_no_modules_for(
    shell: Shell, pair: subprocess.Popen[str]
) -> None:
    [_, other] = shell.read_json("runs")

    asked = shell.run("dead", "replay", other["id"], "pick")

    assert asked.code == 2
    assert "has workers without" in asked.err


def test_the_owner_refuses_a_replay_that_its_workers_have_no_queue_for(shell: Shell) -> None:
    shell.write("queued.yaml", QUEUED)
    shell.write("steps.py", STEPS)
    shell.write("pair.yaml", PAIR)
    shell.write("fruit", "pear")
    assert shell.run("run", "queued.yaml").code == 1
    shell.start("run", "pair.yaml")
    eventually((shell.folder / "waiting").exists)
    [_, queued] = shell.read_json("runs")

    asked = shell.run("dead", "replay", queued["id"], "slow")

    assert asked.code == 2
    assert "has workers without label size=big, queue heavy" in asked.err


def test_the_exit_code_is_that_of_the_own_run(shell: Shell) -> None:
    shell.write("pair.yaml", PAIR)
    shell.write("steps.py", STEPS)
    (shell.folder / "open").touch()
    assert shell.run("run", "pair.yaml").code == 1
    [failed] = shell.read_json("runs")
    (shell.folder / "open").unlink()
    (shell.folder / "waiting").unlink()
    shell.write("wait.yaml", "\n".join(PAIR.splitlines()[:-1]))
    command = shell.start("run", "wait.yaml")
    eventually((shell.folder / "waiting").exists)

    asked = shell.run("dead", "replay", failed["id"], "pick")
    (shell.folder / "open").touch()
    ended = finish(command)

    assert asked.code == 0, asked.err
    assert f"pair {failed['id'][-8:]} FAILED after" in ended.out
    assert ended.code == 0


def test_a_second_terminal_sees_how_far_a_task_is(
    shell: Shell, pair: subprocess.Popen[str]
) -> None:
    eventually(lambda: "25% a quarter" in shell.run("show", "latest").out)
