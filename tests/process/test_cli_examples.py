"""What the README and the examples promise, run as printed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.process.commands import Shell, eventually
from tests.servers.process import free_port

ROOT = Path(__file__).parents[2]


def _block(language: str, place: int = 0) -> str:
    page = (ROOT / "README.md").read_text()
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return blocks[place]


def test_the_first_workflow_of_the_readme_works_as_printed(shell: Shell) -> None:
    shell.write("greetings.py", _block("python", 1))
    shell.write("hello.yaml", _block("yaml"))

    ended = shell.run("run", "hello.yaml", "--input", '{"name": "Ada"}')
    shown = shell.run("show", "latest", "weather").out

    assert ended.code == 0, ended.err + ended.out
    assert '"Good morning, Ada. It is 18 degrees in Lisbon."' in ended.out
    assert "the weather service is busy" in shown


def test_the_newcomers_script_is_the_one_of_the_examples() -> None:
    assert _block("python") == (ROOT / "examples" / "newcomer.py").read_text()


def test_the_curl_lines_of_the_readme_work_as_printed(shell: Shell) -> None:
    address = f"127.0.0.1:{free_port()}"
    server = shell.start("up", "--listen", address)
    eventually(lambda: shell.run("runs", "--server", f"http://{address}").code == 0)
    lines = _block("sh").replace("\\\n", " ").replace("127.0.0.1:8080", address).splitlines()

    told = [
        subprocess.run(
            [*shlex.split(line), "-f"], capture_output=True, text=True, timeout=30, check=False
        )
        for line in lines
    ]
    server.terminate()

    assert [one.returncode for one in told] == [0] * len(lines), told
    assert '"status":"ok"' in told[0].stdout
    assert '"created":true' in told[1].stdout
    assert '"total_steps":2' in told[2].stdout
    assert '"items":[{' in told[3].stdout
    assert "tidemill.workflow.started.v1" in told[4].stdout
    assert 'jobs_total{type="compute"} 1.0' in told[5].stdout


def test_the_demo_ends_with_its_summary(shell: Shell) -> None:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        cwd=shell.folder,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "process-payment    started (attempt 2)" in demo.stdout
    assert "lost its worker in attempt 1, runs again" in demo.stdout
    assert "2 of 2 runs succeeded" in demo.stdout


def test_ctrl_c_ends_the_demo_quietly(shell: Shell) -> None:
    demo = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        cwd=shell.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TIDEMILL_LISTEN": "127.0.0.1:0"},
    )
    said = demo.stdout
    assert said is not None
    eventually(lambda: "started" in said.readline())

    os.killpg(demo.pid, signal.SIGINT)  # as the keyboard does, to everybody in the terminal
    _, err = demo.communicate(timeout=30)

    assert demo.returncode == 130
    assert "Traceback" not in err


def test_a_run_on_postgresql_ends_like_one_on_sqlite(shell: Shell, postgres_dsn: str) -> None:
    shell.write("one.yaml", "name: one\ntasks: [{id: only, executor: noop}]")

    ended = shell.run("run", "one.yaml", "--store", postgres_dsn)

    assert ended.code == 0, ended.err + ended.out
    [run] = shell.read_json("runs", "--store", postgres_dsn)
    assert run["state"] == "SUCCEEDED"
