"""`tidemill conformance` against two workers that should pass and one that should not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.process.commands import Shell, finish
from tests.style.sources import ROOT

PLAIN = ROOT / "examples" / "workers" / "plain_worker.py"
STUBS = ROOT / "tidemill" / "protocol" / "generated" / "worker_pb2.py"
CASES = 17
SUITE_SECONDS_MAX = 120.0

# Executors come from the entry points of installed packages: this one is put on the path.
EXECUTORS = """
from tidemill.worker.executor import Executor
from tidemill.worker.failures import TaskFailure

class Plain(Executor):
    def __init__(self, workshop):
        pass

    def check(self, params):
        return []

class Echo(Plain):
    async def run(self, call):
        return {"params": call.params, "inputs": call.inputs}

class Fail(Plain):
    async def run(self, call):
        raise TaskFailure(call.params["type"], call.params["message"])

class Final(Plain):
    async def run(self, call):
        raise TaskFailure(call.params["type"], call.params["message"], final=True)
"""
ENTRY_POINTS = """
[tidemill.executors]
echo = conformance_executors:Echo
fail = conformance_executors:Fail
final = conformance_executors:Final
"""
WORKER = """
import os, sys
os.environ["PYTHONPATH"] = {folder!r}
command = [sys.executable, "-m", "tidemill.cli", "worker", "--grace", "0.5"]
command += ["--connect", os.environ.pop("TIDEMILL_ADDRESS")]
os.execv(sys.executable, command)
"""
IDLER = "import time; print('I do as I like', flush=True); time.sleep(60)"


@pytest.fixture
def product_worker(tmp_path: Path) -> str:
    (tmp_path / "conformance_executors.py").write_text(EXECUTORS)
    package = tmp_path / "conformance_executors-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: conformance-executors\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(folder=str(tmp_path)))
    return str(script)


# All cases at once are many processes, and some of them measure.
@pytest.mark.alone
def test_the_worker_of_the_product_passes_every_case(shell: Shell, product_worker: str) -> None:
    started = shell.start("conformance", "--", sys.executable, product_worker)

    ended = finish(started, SUITE_SECONDS_MAX)

    assert (ended.code, ended.out.count("PASS")) == (0, CASES), ended.out


@pytest.mark.alone
def test_the_plain_worker_passes_every_case(shell: Shell) -> None:
    started = shell.start("conformance", "--", sys.executable, str(PLAIN))

    ended = finish(started, SUITE_SECONDS_MAX)

    assert (ended.code, ended.out.count("PASS")) == (0, CASES), ended.out


def test_the_plain_worker_works_copied_out_beside_its_stubs(shell: Shell) -> None:
    (shell.folder / "plain_worker.py").write_text(PLAIN.read_text())
    (shell.folder / "worker_pb2.py").write_text(STUBS.read_text())

    ended = shell.run("conformance", "--case", "batch", "--", sys.executable, "plain_worker.py")

    assert (ended.code, "1 of 1 cases passed" in ended.out) == (0, True), ended.out


def test_a_worker_that_never_connects_fails_with_a_reason(shell: Shell) -> None:
    ended = shell.run("conformance", "--case", "greets", "--", sys.executable, "-c", IDLER)

    assert ended.code == 1
    assert "FAIL  greets properly" in ended.out
    assert "connects: not seen within 10 s" in ended.out


def test_a_worker_that_dies_is_quoted(shell: Shell) -> None:
    dies = "import sys; sys.exit('the moon is in the wrong place')"

    ended = shell.run("conformance", "--case", "greets", "--", sys.executable, "-c", dies)

    assert "the worker ended with status 1: the moon is in the wrong place" in ended.out


def test_a_command_that_does_not_exist_is_named(shell: Shell) -> None:
    ended = shell.run("conformance", "--", "no-such-program")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("no-such-program cannot be started: there is no such command") == 1
