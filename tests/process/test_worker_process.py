"""The worker as a real process: start, work, signals, and its end with its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.roles.executor_stage import is_gone, pid_in
from tests.roles.worker_stage import ScriptedDoor, Stream, a_token, an_assignment
from tidemill.domain.events import Failed, Succeeded
from tidemill.gateway.server import GatewayServer
from tidemill.protocol.messages import (
    Assignment,
    Cancels,
    Goodbye,
    Holdings,
    Logs,
    Ping,
    Progress,
    Refused,
)

ORDERS = """
import logging, os, sys, threading, time
import tidemill.sdk.context as sdk

def talk():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    logging.getLogger("shop").info("to a logger")
    sdk.context().progress(0.5, "half")
    return os.getpid()

async def talk_later():
    print("from a coroutine")

async def block():
    told = threading.Event()
    logging.getLogger("tidemill.worker").addFilter(lambda record: told.set() or True)
    told.wait(20)

def hang():
    time.sleep(3600)

def crash():
    os._exit(9)

def read_stdin():
    return sys.stdin.read()

def pid_then_sleep(path):
    with open(path, "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(3600)
"""

WORKER = ("tidemill.cli", "worker")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.py").write_text(ORDERS)
    return tmp_path


@asynccontextmanager
async def a_gateway(folder: Path) -> AsyncIterator[ScriptedDoor]:
    door = ScriptedDoor()
    server = GatewayServer(door, f"unix:{folder}/gate")
    await server.start()
    try:
        yield door
    finally:
        await server.stop(0)


@asynccontextmanager
async def a_worker(folder: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *WORKER, "--connect", f"unix:{folder}/gate"),
        *("--import", str(folder / "orders.py"), "--name", "w1", *options),
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def calls(name: str, position: int = 0, **fields: Any) -> Assignment:
    isolation = fields.pop("isolation", "thread")
    params = {"function": f"orders:{name}", "isolation": isolation}
    inputs = fields.pop("inputs", {})
    return an_assignment(
        position,
        "python",
        params=msgspec.json.encode(params),
        inputs=msgspec.json.encode(inputs),
        **fields,
    )


def shell(*argv: str, position: int = 0, **fields: Any) -> Assignment:
    params = msgspec.json.encode({"argv": argv})
    return an_assignment(position, "shell", params=params, **fields)


async def test_a_worker_offers_what_it_has(folder: Path) -> None:
    options = ("--slots", "3", "--queues", "fast,slow", "--labels", "zone=eu")
    async with a_gateway(folder) as door, a_worker(folder, *options):
        hello = await (await door.next_stream()).hello()

    assert (hello.worker, hello.slots, hello.queues) == ("w1", 3, ("fast", "slow"))
    assert hello.labels == {"zone": "eu"}
    assert set(hello.executors) >= {"shell", "http", "noop"}
    assert "python" not in hello.executors
    assert "python:orders:talk" in hello.offers
    assert all(offer.startswith("python:orders:") for offer in hello.offers)


async def test_a_function_runs_and_what_it_says_arrives(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder) as process:
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(calls("talk"), calls("talk_later", 1), calls("read_stdin", 2))
        outcomes = [await stream.outcome(n) for n in range(3)]
        progress = await stream.hear(Progress)

    text = "".join(c.text for m in stream.heard if isinstance(m, Logs) for c in m.chunks)
    assert [o.report for o in outcomes] == [
        Succeeded(1, str(process.pid).encode()),
        Succeeded(1, None),
        Succeeded(1, b'""'),
    ]
    assert "to stdout\nto stderr\n" in text
    assert "INFO to a logger\n" in text
    assert "from a coroutine\n" in text
    assert progress.reports[0].message == "half"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems show less of a process")
async def test_not_even_the_kernel_shows_user_code_what_the_worker_knows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_TOKEN", "hidden")
    monkeypatch.setenv("SHOP", "open")
    async with a_gateway(folder) as door, a_worker(folder) as process:
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(shell("cat", f"/proc/{process.pid}/environ"))
        await stream.outcome(0)

    text = "".join(c.text for m in stream.heard if isinstance(m, Logs) for c in m.chunks)
    assert "SHOP=open" in text
    assert "hidden" not in text


async def test_who_blocks_the_event_loop_is_told(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder):
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(calls("block"))
        text = await _first_text(door, stream)

    assert "the event loop has been blocked for 2 s by task task-0" in text
    assert "in block\n    told.wait(20)" in text


async def _first_text(door: ScriptedDoor, stream: Stream) -> str:
    """What comes first of any task: here, or on the stream that follows a worker's silence."""
    hearing = asyncio.create_task(stream.hear(Logs))
    again = asyncio.create_task(door.next_stream())
    await asyncio.wait([hearing, again], return_when=asyncio.FIRST_COMPLETED)
    if again.done():
        hearing.cancel()
        again.result().welcome(keep=(a_token(),))
        return await _first_text(door, again.result())
    again.cancel()
    return (await hearing).chunks[0].text


async def test_pings_go_on_while_threads_block(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder):
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(calls("hang"))
        await stream.hear(Holdings, lambda message: message.held == (a_token(),))
        stream.heard.clear()

        assert await stream.hear(Ping) == Ping()


@pytest.mark.parametrize("executor", ["shell", "process"])
async def test_a_timeout_kills_what_can_be_killed(folder: Path, executor: str) -> None:
    path = folder / "pid"
    program = (
        f"import os, time; open({str(path)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(99)"
    )
    task = (
        shell(sys.executable, "-c", program, attempt_seconds=5)
        if executor == "shell"
        else calls(
            "pid_then_sleep", isolation="process", inputs={"path": str(path)}, attempt_seconds=5
        )
    )
    async with a_gateway(folder) as door, a_worker(folder):
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(task)
        pid = await pid_in(path)
        report = (await stream.outcome()).report

        assert isinstance(report, Failed)
        assert report.timeout
        assert await is_gone(pid)


async def test_a_cancelled_command_is_gone_and_the_worker_goes_on(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder):
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(shell("sleep", "60"))
        await stream.hear(Holdings, lambda message: bool(message.held))
        stream.say(Cancels((a_token(),)))
        await stream.outcome()
        stream.assign(an_assignment(1, "noop"))

        assert (await stream.outcome(1)).report == Succeeded(1, None)


async def test_a_killed_worker_leaves_no_child_behind(folder: Path) -> None:
    path = folder / "pid"
    async with a_gateway(folder) as door, a_worker(folder) as process:
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(calls("pid_then_sleep", isolation="process", inputs={"path": str(path)}))
        pid = await pid_in(path)
        process.kill()

        assert await is_gone(pid)


async def test_sigterm_drains(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder, "--grace", "0") as process:
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(shell("sleep", "60"))
        await stream.hear(Holdings, lambda message: bool(message.held))
        process.terminate()
        goodbye = await stream.hear(Goodbye)
        stream.hang_up()

        assert await asyncio.wait_for(process.wait(), 10) == 0
    assert goodbye.released == (a_token(),)


async def test_a_worn_out_worker_leaves_with_its_own_exit_code(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder, "--slots", "1") as process:
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(calls("hang", attempt_seconds=0.1))
        await stream.outcome()
        stream.acknowledge(a_token())
        await stream.hear(Goodbye)
        stream.hang_up()

        assert await asyncio.wait_for(process.wait(), 10) == 75


async def test_a_refused_worker_says_why_and_leaves(folder: Path) -> None:
    async with a_gateway(folder) as door, a_worker(folder) as process:
        (await door.next_stream()).say(Refused("unknown namespace"))

        assert await asyncio.wait_for(process.wait(), 10) == 78


PARENT = """
import subprocess, sys, time
worker = subprocess.Popen(
    [sys.executable, "-m", "tidemill.cli", "worker"]
    + ["--connect", sys.argv[1], "--import", sys.argv[2]],
    stdin=subprocess.PIPE,
)
print(worker.pid, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_worker_and_its_commands_end_when_their_parent_does(
    folder: Path, number: signal.Signals
) -> None:
    path = folder / "pid"
    program = (
        f"import os, time; open({str(path)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(99)"
    )
    async with a_gateway(folder) as door:
        parent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PARENT, f"unix:{folder}/gate", str(folder / "orders.py")),
            stdout=subprocess.PIPE,
        )
        assert parent.stdout is not None
        worker = int(await parent.stdout.readline())
        stream = await door.next_stream()
        stream.welcome()
        stream.assign(shell(sys.executable, "-c", program))
        command = await pid_in(path)
        parent.send_signal(number)
        await parent.wait()

        assert await is_gone(worker)
        assert await is_gone(command)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--import", "no_such_module"], "--import no_such_module: ModuleNotFoundError"),
        (["--slots", "0"], "--slots: must be between 1 and"),
        (["--result-bytes-max", "99999999"], "--result-bytes-max: must be between 1 and"),
        (["--labels", "gpu"], "'gpu' is not NAME=VALUE"),
    ],
)
def test_a_wrong_option_is_one_clear_line_and_exit_code_2(options: list[str], words: str) -> None:
    command = [sys.executable, "-m", *WORKER, "--connect", "unix:/nowhere", *options]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_started_by_hand_outlives_its_input(folder: Path) -> None:
    command = [sys.executable, "-m", *WORKER, "--connect", f"unix:{folder}/nobody"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None

    words = process.stderr.readline()
    while b"no connection" not in words:
        words += process.stderr.readline()
    os.kill(process.pid, signal.SIGTERM)

    assert words.startswith(b"worker ")
    assert f" connects to unix:{folder}/nobody\n".encode() in words
    assert b"serves" not in words  # nobody has welcomed it
    assert b"No such file or directory; trying on" in words
    assert process.wait(20) == 0
    process.stderr.close()
