"""The python executor: on the loop, in threads, in a child process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.roles.executor_stage import a_call, failure, is_gone, pid_in, run
from tests.roles.worker_stage import RUN, a_workshop
from tidemill.sdk.context import FakeVoice
from tidemill.worker.executors.python import PythonExecutor
from tidemill.worker.library import ImportFailed, load_library, load_what_works
from tidemill.worker.processes import Commands
from tidemill.worker.threads import Threads

SOURCE = """
import ctypes, os, signal, sys, threading, time
from os import system
import tidemill.sdk.context as sdk

def add(a: int, b: int = 1) -> int:
    return a + b

async def add_later(a, b):
    return a + b

def where():
    return threading.current_thread().name, sdk.context().idempotency_key, os.getpid()

def exit(): sys.exit("enough")
def crash(): ctypes.string_at(0)
def vanish(): os._exit(3)
def kill(): os.kill(os.getpid(), signal.SIGKILL)
def fail(): raise ValueError("no stock")
def final(): raise sdk.FinalError("never")
def later(): raise sdk.RetryLater(5)
def large(): return "x" * 300_000
def nothing(): pass
def talk():
    print("printed")
    sdk.context().logger.info("logged")
    sdk.context().progress(0.5, "half")
    sdk.context().heartbeat()

def sleep(path):
    with open(path, "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(60)

class Orders:
    @staticmethod
    def count(): return 3

NUMBER = 7
"""


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "orders_under_test.py"
    path.write_text(SOURCE)
    before = list(sys.path)
    yield path
    sys.path[:] = before
    sys.modules.pop("orders_under_test", None)


@pytest.fixture
def python(orders: Path) -> Iterator[PythonExecutor]:
    commands = Commands()
    yield PythonExecutor(a_workshop(load_library([str(orders)]), commands=commands))
    commands.close()


def of(name: str, isolation: str = "thread") -> dict[str, Any]:
    return {"function": f"orders_under_test:{name}", "isolation": isolation}


both = pytest.mark.parametrize("isolation", ["thread", "process"])


@both
@pytest.mark.parametrize("name", ["add", "add_later"])
async def test_inputs_become_arguments_and_the_return_value_the_result(
    python: PythonExecutor, name: str, isolation: str
) -> None:
    result = await run(python, a_call(of(name, isolation), {"a": 2, "b": 3}))

    assert result in (5, b"5")


async def test_a_plain_function_runs_in_a_thread_with_its_context(python: PythonExecutor) -> None:
    result = await run(python, a_call(of("where")))

    assert result == f'["task-1","{RUN}:3",{os.getpid()}]'.encode()


async def test_an_isolated_function_runs_in_another_process(python: PythonExecutor) -> None:
    result = await run(python, a_call(of("where", "process")))

    assert f"{RUN}:3".encode() in result
    assert str(os.getpid()).encode() not in result


@both
async def test_a_function_without_a_result_returns_null(
    python: PythonExecutor, isolation: str
) -> None:
    assert await run(python, a_call(of("nothing", isolation))) is None


@both
@pytest.mark.parametrize(
    ("name", "kind", "is_final", "words"),
    [
        ("fail", "ValueError", False, "no stock"),
        ("final", "FinalError", True, "never"),
        ("exit", "SystemExit", False, "enough"),
        ("large", "ResultTooLarge", True, "more than 300001 bytes as JSON, 262144 is the limit"),
    ],
)
async def test_what_a_function_raises_is_its_failure(
    python: PythonExecutor, isolation: str, name: str, kind: str, is_final: bool, words: str
) -> None:
    got, final, message = await failure(python, a_call(of(name, isolation)))

    assert (got, final) == (kind, is_final)
    assert words in message


@pytest.mark.parametrize(
    ("name", "words"),
    [("crash", "SIGSEGV"), ("vanish", "exit code 3"), ("kill", "SIGKILL; perhaps the machine")],
)
async def test_a_crash_in_a_child_is_a_failure_that_names_it(
    python: PythonExecutor, name: str, words: str
) -> None:
    kind, final, message = await failure(python, a_call(of(name, "process")))

    assert (kind, final) == ("ChildCrashed", False)
    assert words in message


async def test_a_child_speaks_like_any_task(python: PythonExecutor) -> None:
    voice = FakeVoice()

    await run(python, a_call(of("talk", "process"), voice=voice))

    assert "printed\n" in voice.text
    assert "INFO logged\n" in voice.text
    assert (voice.reports, voice.heartbeats) == ([(0.5, "half")], 1)


async def test_a_cancelled_child_is_gone(python: PythonExecutor, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    call = a_call(of("sleep", "process"), {"path": str(path)})
    running = asyncio.create_task(run(python, call))
    pid = await pid_in(path)
    running.cancel()
    await asyncio.wait([running])

    assert await is_gone(pid)


@both
async def test_arguments_that_do_not_fit_are_final(python: PythonExecutor, isolation: str) -> None:
    kind, final, message = await failure(python, a_call(of("add", isolation), {"b": 1}))

    assert (kind, final) == ("InvalidInputs", True)
    assert "missing a required argument: 'a'" in message


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "orders_under_test:os.system",
        "orders_under_test:system",
        "orders_under_test:sdk.context",
        "orders_under_test:Orders",
        "orders_under_test:NUMBER",
        "orders_under_test:add.__globals__",
        "orders_under_test:__builtins__.eval",
        "orders_under_test:",
        "orders_under_test",
        "",
        "json:dumps",
    ],
)
async def test_no_other_name_resolves(python: PythonExecutor, name: str) -> None:
    kind, final, _ = await failure(python, a_call({"function": name}))

    assert (kind, final) == ("UnknownFunction", True)


async def test_a_static_method_resolves(python: PythonExecutor) -> None:
    assert await run(python, a_call(of("Orders.count"))) == b"3"


async def test_threads_are_used_again(orders: Path) -> None:
    workshop = a_workshop(load_library([str(orders)]), threads=Threads(50))
    python = PythonExecutor(workshop)
    before = set(threading.enumerate())

    for _ in range(20):
        await run(python, a_call(of("add"), {"a": 1}))

    assert 0 < len(set(threading.enumerate()) - before) < 20


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 +", "SyntaxError"),
        ("raise SystemExit(1)", "SystemExit"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_clear_line(
    tmp_path: Path, source: str, words: str
) -> None:
    path = tmp_path / "broken_module.py"
    path.write_text(source)

    with pytest.raises(ImportFailed) as caught:
        load_library([str(path)])

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_may_not_hide_a_module_of_the_standard_library(tmp_path: Path) -> None:
    path = tmp_path / "json.py"
    path.write_text("")

    with pytest.raises(ImportFailed, match="rename the file"):
        load_library([str(path)])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("orders_under_test:ad", "defines no function 'ad', did you mean \"add\"?"),
        ("orders_under_test.add", "write orders_under_test:add, with a colon"),
        ("add", "write module:function"),
        ("shop:add", "the module shop is not imported (imported: orders_under_test)"),
        ("orders_under_test:system", "defines no function 'system'"),
    ],
)
def test_a_function_that_is_not_there_is_found_before_it_runs(
    python: PythonExecutor, function: str, words: str
) -> None:
    [problem] = python.rehearse({"function": function}, ["a"])

    assert problem.startswith("params.function: ")
    assert words in problem


def test_inputs_that_do_not_fit_are_found_before_they_are_there(python: PythonExecutor) -> None:
    params = {"function": "orders_under_test:add"}

    assert python.rehearse(params, ["a", "b"]) == []
    [problem] = python.rehearse(params, ["a", "c"])
    assert problem == "inputs: orders_under_test:add: got an unexpected keyword argument 'c'"


def test_what_can_be_imported_is_loaded_without_the_rest(orders: Path) -> None:
    library, failed = load_what_works([str(orders), "no_such_module"])

    assert library.find("orders_under_test:add")(2) == 3
    assert failed == {"no_such_module": "ModuleNotFoundError: No module named 'no_such_module'"}
    assert library.broken == {"no_such_module"}
