"""`tidemill run` from the outside: what it prints, how it ends, how it is interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from tests.process.commands import Shell, eventually, finish

GOOD = """
name: good
input: {type: object, properties: {who: {type: string, default: world}}}
tasks:
  - {id: first, executor: flaky, params: {fail_attempts: 1}, retry: {base_seconds: 0.05}}
  - {id: second, executor: noop, depends_on: [first]}
output: "'done'"
"""

SHORT = """
name: short
tasks: [{id: one, executor: noop}, {id: two, executor: noop, depends_on: [one]}]
"""

BAD = """
name: bad
imports: [steps.py]
tasks:
  - id: divide
    executor: python
    params: {function: "steps:divide"}
    inputs: {by: 0}
    retry: {max_retries: 0}
  - {id: below, executor: noop, depends_on: [divide]}
"""

BAD_STEPS = """
def divide(by):
    print("dividing by", by, "\\x1b[31m")
    return 1 / by
"""

GATED = """
name: gated
imports: [gate.py]
tasks:
  - {id: wait, executor: python, params: {function: "gate:wait"}}
  - {id: after, executor: noop, depends_on: [wait]}
"""

GATE = """
import time
from pathlib import Path

def wait():
    Path("waiting").touch()
    while not Path("open").exists():
        time.sleep(0.01)
"""


@pytest.fixture
def gated(shell: Shell) -> subprocess.Popen[str]:
    """A run whose first task waits for a file called `open`."""
    shell.write("gated.yaml", GATED)
    shell.write("gate.py", GATE)
    command = shell.start("run", "gated.yaml")
    eventually((shell.folder / "waiting").exists)
    return command


def test_a_run_that_succeeds_prints_its_id_its_steps_and_its_output(shell: Shell) -> None:
    shell.write("good.yaml", GOOD)

    ended = shell.run("run", "good.yaml")

    assert ended.code == 0, ended.err
    [run] = shell.read_json("runs")
    assert ended.out.startswith(f"run {run['id']}\n")
    assert "first   attempt 1 failed, trying again: Flaky" in ended.out
    assert "second  succeeded" in ended.out
    assert '"done"' in ended.out
    assert "good SUCCEEDED after" in ended.out


def test_a_run_that_fails_ends_with_output_input_and_the_users_own_traceback(
    shell: Shell,
) -> None:
    shell.write("bad.yaml", BAD)
    shell.write("steps.py", BAD_STEPS)

    ended = shell.run("run", "bad.yaml")

    assert ended.code == 1
    story = ended.out[ended.out.index("task divide failed after 1 attempt: retries exhausted") :]
    assert "dividing by 0 \\x1b[31m" in story
    assert '"by": 0' in story
    assert "return 1 / by" in story
    assert "ZeroDivisionError: division by zero" in story
    assert "tidemill/worker" not in story
    assert "\x1b" not in ended.out
    assert re.search(r"^bad FAILED after [0-9.]+ s: a task failed$", story, re.MULTILINE)


def test_the_commands_to_go_on_with_name_the_task_and_the_store(shell: Shell) -> None:
    shell.write("bad.yaml", BAD)
    shell.write("steps.py", BAD_STEPS)

    ended = shell.run("run", "bad.yaml", "--store", "else where.db")

    [hint] = [line for line in ended.out.splitlines() if "dead replay" in line]
    assert hint.endswith(" divide --store 'else where.db'")


def test_a_run_that_is_over_at_once_still_tells_every_step_once_and_in_order(
    shell: Shell,
) -> None:
    shell.write("short.yaml", SHORT)

    for _ in range(3):
        _, *steps, _, _ = shell.run("run", "short.yaml").out.splitlines()

        times, told = zip(*(step.split(maxsplit=1) for step in steps), strict=True)
        assert [text.split(" in ")[0] for text in told] == [
            "one  started",
            "one  succeeded",
            "two  started",
            "two  succeeded",
        ]
        assert list(times) == sorted(times)


def test_a_pipe_that_closes_early_changes_nothing_about_the_run(shell: Shell) -> None:
    shell.write("good.yaml", GOOD)
    command = shell.start("run", "good.yaml")
    assert command.stdout is not None
    assert command.stderr is not None

    command.stdout.readline()
    command.stdout.close()
    complaints = command.stderr.read()
    command.stderr.close()

    assert (command.wait(30), complaints) == (0, "")


def test_run_always_starts_a_new_run(shell: Shell) -> None:
    shell.write("good.yaml", GOOD)

    shell.run("run", "good.yaml")
    shell.run("run", "good.yaml")

    assert len({run["id"] for run in shell.read_json("runs")}) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.yaml", "--input", "{"], "--input: is not JSON"),
        (["good.yaml", "--input", '{"who": 7}'], "who"),
        (["good.yaml", "--input", '{"who": "a", "who": "b"}'], '"who" twice in one object'),
        (["good.yaml", "--store", "good.yaml"], "--store: "),
        (["good.yaml", "--store", "good.yaml/a.db"], "good.yaml/a.db cannot be used"),
        (["missing.yaml"], "missing.yaml: there is no such file"),
        (["good.yaml", "--store", "nope/a.db"], "nope/a.db cannot be made: there is no folder"),
        (["good.yaml", "--store", "mysql://x"], "mysql:// is not a store that Tidemill knows"),
        (["good.yaml", "--import", "nowhere.py"], "there is no such file"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2(
    shell: Shell, arguments: list[str], message: str
) -> None:
    shell.write("good.yaml", GOOD)

    ended = shell.run("run", *arguments)

    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_a_second_owner_exits_2_and_names_the_first_ones_pid(
    shell: Shell, gated: subprocess.Popen[str]
) -> None:
    second = shell.run("run", "gated.yaml")

    assert second.code == 2
    assert f"owned by process {gated.pid}" in second.err


def test_a_lock_file_left_by_kill_9_is_no_obstacle(
    shell: Shell, gated: subprocess.Popen[str]
) -> None:
    shell.write("good.yaml", GOOD)
    gated.kill()
    finish(gated)

    assert shell.run("run", "good.yaml").code == 0


def test_a_second_terminal_sees_the_run_under_way(
    shell: Shell, gated: subprocess.Popen[str]
) -> None:
    listed = shell.run("runs").out
    shown = shell.run("show", "latest").out

    assert "RUNNING" in listed
    assert "after  PENDING" in shown
    assert "waits for wait" in shown
    (shell.folder / "open").touch()
    assert finish(gated).code == 0


def test_a_second_terminal_cancels_the_run_under_way(
    shell: Shell, gated: subprocess.Popen[str]
) -> None:
    answer = shell.run("cancel", "latest")
    (shell.folder / "open").touch()  # a thread cannot be stopped, it must end by itself

    assert answer.code == 0, answer.err
    assert finish(gated).code == 1
    [run] = shell.read_json("runs")
    assert run["state"] == "CANCELLED"


def test_ctrl_c_once_lets_running_tasks_finish_and_leaves_the_run_resumable(
    shell: Shell, gated: subprocess.Popen[str]
) -> None:
    gated.send_signal(signal.SIGINT)
    (shell.folder / "open").touch()
    ended = finish(gated)

    assert ended.code == 130, ended.out + ended.err
    assert "is not finished: tidemill resume" in ended.err
    assert shell.read_json("show", "latest", "wait")["task"]["state"] == "SUCCEEDED"
    assert shell.read_json("show", "latest", "after")["task"]["state"] == "READY"
    assert shell.run("resume").code == 0


def test_ctrl_c_twice_stops_at_once(shell: Shell, gated: subprocess.Popen[str]) -> None:
    gated.send_signal(signal.SIGINT)
    eventually(lambda: "Ctrl-C again" in _next_line(gated))
    gated.send_signal(signal.SIGINT)
    ended = finish(gated)

    assert ended.code == 130
    assert not (shell.folder / "open").exists()
    (shell.folder / "open").touch()
    assert shell.run("resume", "latest").code == 0


def test_a_signal_that_no_keyboard_sends_is_not_answered_with_ctrl_c(
    shell: Shell, gated: subprocess.Popen[str]
) -> None:
    gated.send_signal(signal.SIGTERM)
    eventually(lambda: "a second signal stops at once" in _next_line(gated))
    (shell.folder / "open").touch()

    assert finish(gated).code == 128 + signal.SIGTERM


def test_the_grace_after_ctrl_c_can_be_chosen(shell: Shell) -> None:
    shell.write("gated.yaml", GATED)
    shell.write("gate.py", GATE)
    command = shell.start("run", "gated.yaml", "--grace", "7.5")
    eventually((shell.folder / "waiting").exists)

    command.send_signal(signal.SIGINT)

    eventually(lambda: "finish, 7.5 s at most" in _next_line(command))
    (shell.folder / "open").touch()
    assert finish(command).code == 130


def test_a_workflow_written_in_python_does_not_run_in_the_owners_process(shell: Shell) -> None:
    shell.write(
        "flow.py",
        "import os\n"
        "from tidemill.domain.workflow import TaskSpec, Workflow\n"
        "open('pids', 'a').write(f'{os.getpid()}\\n')\n"
        "def work():\n    return os.getpid()\n"
        "flow = Workflow(name='flow', tasks=(TaskSpec(id='one', executor='python',"
        " params={'function': 'flow:work'}),))\n",
    )
    command = shell.start("run", "flow.py:flow")

    assert finish(command).code == 0
    assert str(command.pid) not in shell.lines("pids")
    assert str(os.getpid()) not in shell.lines("pids")


def _next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
