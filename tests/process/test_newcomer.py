"""What somebody does on the first day: the script of the README, and the first project."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.commands import Shell, eventually, is_ready
from tests.servers.process import free_port
from tidemill import task, workflow
from tidemill.authoring import submitting
from tidemill.client import RunFailed
from tidemill.domain.errors import InvalidWorkflow

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES_MAX = 19


@task
def unknown() -> int:
    """A task that the server's workers do not have."""
    return 1


@workflow
def elsewhere() -> int:
    """Waits for a worker."""
    return unknown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`tidemill up` with the example imported; its address."""
    shell = Shell(tmp_path_factory.mktemp("newcomer"))
    shutil.copy(EXAMPLES / "newcomer.py", shell.folder)
    listen, health = (f"127.0.0.1:{free_port()}" for _ in range(2))
    process = shell.start("up", "--import", "newcomer.py", "--listen", listen, "--health", health)
    eventually(lambda: is_ready(health))
    yield f"http://{listen}"
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture
def weather(server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TIDEMILL_SERVER", server)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("newcomer").weather


def test_the_newcomers_script_works_as_printed(server: str, shell: Shell) -> None:
    told = _python(EXAMPLES, "newcomer.py", TIDEMILL_SERVER=server)

    lines = told.splitlines()
    assert (lines[0], lines[-2:]) == ("weather: RUNNING", ["weather: SUCCEEDED", "11.5"])
    assert "average: SUCCEEDED" in lines
    again = shell.run("deploy", str(EXAMPLES / "newcomer.py"), "--server", server)
    assert again.out.splitlines()[1].split() == ["weather", "1", "unchanged"]


def test_a_key_starts_a_run_once_and_the_result_has_its_type(weather: Any) -> None:
    first = weather.options(key="once").submit("Oslo")
    second = weather.options(key="once").submit(city="Oslo")

    assert (first.created, second.created, first.id) == (True, False, second.id)
    assert (first.wait(30).state, second.result(30)) == ("SUCCEEDED", 4.0)
    assert [event.data.state for event in first.events()][-1] == "SUCCEEDED"


async def test_a_run_is_submitted_and_awaited_in_a_loop(weather: Any) -> None:
    handle = await weather.submit_async(city="Porto")

    assert await handle.result_async(30) == 11.5
    assert (await handle.wait_async()).ended


def test_a_run_that_does_not_succeed_has_no_result(weather: Any) -> None:
    handle = elsewhere.submit()  # no worker there has imported this file, so it waits
    handle.cancel()

    assert handle.wait(30).state == "CANCELLED"
    with pytest.raises(RunFailed, match=f"run {handle.id} is CANCELLED"):
        handle.result()


def test_a_run_that_nobody_can_run_says_why(
    weather: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(submitting, "PATIENCE_SECONDS", 0.2)
    handle = elsewhere.submit()

    with pytest.raises(TimeoutError):
        handle.result(2)

    handle.cancel()
    assert f"run {handle.id}: task unknown waits: no worker offers" in caplog.text


def test_tasks_that_no_worker_could_import_are_not_submitted(weather: Any) -> None:
    @task
    def local() -> int:
        return 1

    @workflow
    def flow() -> int:
        return local()

    with pytest.raises(InvalidWorkflow, match="move it to the top of its module"):
        flow.submit()


def test_the_newcomers_script_is_short() -> None:
    assert len((EXAMPLES / "newcomer.py").read_text().splitlines()) <= LINES_MAX


def test_the_first_project_passes_its_own_tests_and_runs(shell: Shell) -> None:
    assert shell.run("init", "first").code == 0
    first = Shell(shell.folder / "first")

    tested = _python(first.folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore")
    assert "4 passed" in tested
    assert first.run("validate", "flow.py").out == "words: 5 tasks, no problems\n"
    ran = first.run("run", "flow.py", "--input", '{"second": "a b c d e f"}')
    assert (ran.code, "'a b c d e f' has 6 words" in ran.out) == (0, True)

    refused = shell.run("init", "first")
    assert refused.code == 2
    assert refused.err.startswith("error: first has flow.py, test_flow.py, README.md")


def _python(folder: Path, *arguments: str, **environ: str) -> str:
    ended = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
