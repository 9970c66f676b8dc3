"""The shell executor."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.roles.executor_stage import a_call, eventually, failure, is_gone, pid_in, run
from tests.roles.worker_stage import RUN, a_workshop
from tidemill.sdk.context import FakeVoice
from tidemill.worker.executors.shell import ShellExecutor
from tidemill.worker.processes import Commands

PRINT_ARGUMENTS = "import sys, json; print(json.dumps(sys.argv[1:]))"


@pytest.fixture
def shell(commands: Commands) -> ShellExecutor:
    return ShellExecutor(a_workshop(result_bytes_max=10_000, commands=commands))


@pytest.fixture
def commands() -> Iterator[Commands]:
    made = Commands()
    yield made
    made.close()


async def test_a_command_gets_its_arguments_and_returns_its_output(shell: ShellExecutor) -> None:
    params = {"argv": ["echo", "order", {"input": "number"}]}

    result = await run(shell, a_call(params, {"number": 7}))

    assert result == {"exit_code": 0, "stdout": "order 7\n"}


async def test_inputs_arrive_on_standard_input_as_json(shell: ShellExecutor) -> None:
    params = {"argv": ["cat"], "output": "json"}

    result = await run(shell, a_call(params, {"order": {"id": 1}}))

    assert result["stdout"] == {"order": {"id": 1}}


HOSTILE = [
    "; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "| touch pwned",
    "&& touch pwned",
    "> pwned",
    "a\nb",
    "'\"\\",
    "*",
    "~",
    "${HOME}",
    "%s%n",
    "-rf",
    "",
    "é漢\u202e",
]


async def test_no_character_of_an_input_means_anything(
    shell: ShellExecutor, tmp_path: Path
) -> None:
    names = [f"i{number}" for number in range(len(HOSTILE))]
    argv: list[Any] = [sys.executable, "-c", PRINT_ARGUMENTS, *({"input": n} for n in names)]
    params = {"argv": argv, "output": "json", "cwd": str(tmp_path)}

    result = await run(shell, a_call(params, dict(zip(names, HOSTILE, strict=True))))

    assert result["stdout"] == HOSTILE
    assert not [*os.scandir(tmp_path)]


async def test_the_environment_is_explicit(
    shell: ShellExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    params = {"argv": ["env"], "env": {"REGION": "eu", "ORDER": {"input": "order"}}}

    result = await run(shell, a_call(params, {"order": 5}))

    lines = dict(line.split("=", 1) for line in result["stdout"].splitlines())
    assert "DATABASE_PASSWORD" not in lines
    assert (lines["REGION"], lines["ORDER"]) == ("eu", "5")
    assert (lines["TIDEMILL_RUN_ID"], lines["TIDEMILL_TASK"]) == (RUN, "pay")
    assert (lines["TIDEMILL_ATTEMPT"], lines["TIDEMILL_IDEMPOTENCY_KEY"]) == ("1", f"{RUN}:3")


async def test_an_unexpected_exit_code_fails_with_the_last_words(shell: ShellExecutor) -> None:
    program = "import sys; sys.exit('no stock')"

    kind, final, message = await failure(shell, a_call({"argv": [sys.executable, "-c", program]}))

    assert (kind, final, message) == ("CommandFailed", False, "exit code 1: no stock")


async def test_an_expected_exit_code_is_a_result(shell: ShellExecutor) -> None:
    result = await run(shell, a_call({"argv": ["false"], "expect_exit": [0, 1]}))

    assert result["exit_code"] == 1


async def test_output_streams_to_the_log_while_the_command_runs(shell: ShellExecutor) -> None:
    voice = FakeVoice()
    program = "import sys, time; print('begun', flush=True); time.sleep(60)"
    call = a_call({"argv": [sys.executable, "-c", program]}, voice=voice)
    running = asyncio.create_task(run(shell, call))

    seen = await eventually(lambda: "begun" in voice.text)
    running.cancel()
    await asyncio.wait([running])

    assert seen


async def test_endless_output_keeps_its_end(shell: ShellExecutor) -> None:
    program = "print('x' * 200_000); print('the end')"

    result = await run(shell, a_call({"argv": [sys.executable, "-c", program]}))

    assert len(result["stdout"]) == 64 * 1024
    assert result["stdout"].endswith("the end\n")
    assert (result["stdout_bytes"], result["stdout_truncated"]) == (200_009, True)
    assert "stderr_truncated" not in result


async def test_errors_beyond_the_limit_keep_their_end_too(shell: ShellExecutor) -> None:
    program = "import sys; sys.stderr.write('x' * 100_000)"

    result = await run(shell, a_call({"argv": [sys.executable, "-c", program]}))

    assert (result["stderr_bytes"], result["stderr_truncated"]) == (100_000, True)


async def test_json_beyond_the_limit_is_final(shell: ShellExecutor) -> None:
    params = {"argv": [sys.executable, "-c", "print('[' + '1,' * 9000 + '1]')"], "output": "json"}

    assert (await failure(shell, a_call(params)))[:2] == ("ResultTooLarge", True)


async def test_a_cancelled_command_is_gone_with_its_children(
    shell: ShellExecutor, tmp_path: Path
) -> None:
    program = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(f'{{child.pid}}\\n')\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(60)\n"
    )
    running = asyncio.create_task(run(shell, a_call({"argv": [sys.executable, "-c", program]})))
    pids = [await pid_in(tmp_path / "pid"), await pid_in(tmp_path / "child")]
    running.cancel()
    await asyncio.wait([running])

    assert [await is_gone(pid) for pid in pids] == [True, True]


async def test_a_child_left_behind_holds_nothing_up(shell: ShellExecutor, tmp_path: Path) -> None:
    program = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(f'{{child.pid}}\\n')\n"
    )

    result = await run(shell, a_call({"argv": [sys.executable, "-c", program]}))

    assert result["exit_code"] == 0
    assert await is_gone(await pid_in(tmp_path / "child"))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "params: the field 'argv' is missing"),
        ({"argv": "ls -l"}, "params.argv: must be a list of words"),
        ({"argv": []}, "params.argv:"),
        ({"argv": [{"input": "program"}]}, "argv[0] must be the name of a program"),
        ({"argv": ["ls"], "shell": True}, "params.shell: there is no such field"),
        ({"argv": ["ls"], "expect_exit": ["0"]}, "params.expect_exit[0]: expected `int`"),
    ],
)
def test_wrong_params_are_named(shell: ShellExecutor, params: dict[str, Any], words: str) -> None:
    assert words in "\n".join(shell.check(params))


@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({"argv": ["no-such-program"]}, "CommandNotFound", "'no-such-program' is not there"),
        ({"argv": ["ls"], "cwd": "/nowhere"}, "FolderNotFound", "params.cwd"),
        ({"argv": ["/"]}, "CommandNotExecutable", "may not be run"),
        ({"argv": ["ls", {"input": "x"}]}, "InvalidParams", "has no input 'x'; it has: none"),
        ({"argv": ["ls", "a\0b"]}, "InvalidParams", "params.argv[1]: holds a NUL character"),
    ],
)
async def test_what_cannot_be_started_is_final(
    shell: ShellExecutor, params: dict[str, Any], kind: str, words: str
) -> None:
    got, final, message = await failure(shell, a_call(params))

    assert (got, final) == (kind, True)
    assert words in message


async def test_output_that_is_not_json_is_a_failure(shell: ShellExecutor) -> None:
    kind, final, _ = await failure(shell, a_call({"argv": ["echo", "{"], "output": "json"}))

    assert (kind, final) == ("OutputNotJson", False)


def test_a_command_as_one_text_is_refused_with_the_list_it_should_be(shell: ShellExecutor) -> None:
    assert shell.check({"argv": "ls -l"}) == [
        "params.argv: must be a list of words, like [ls, -l], not one text"
    ]


def test_inputs_that_the_task_lacks_are_found_before_it_runs(shell: ShellExecutor) -> None:
    params = {"argv": ["echo", {"input": "a"}, {"input": "b"}], "env": {"C": {"input": "c"}}}

    assert shell.rehearse(params, ["a"]) == [
        "params.argv[2]: the task has no input 'b'; it has: a",
        "params.env.C: the task has no input 'c'; it has: a",
    ]
