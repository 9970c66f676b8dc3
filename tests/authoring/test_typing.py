"""What a type checker sees: calls of tasks are of the type that the function returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from typing import assert_type

from tidemill import RetryPolicy, secret, task, workflow
from tidemill.authoring.submitting import RunHandle
from tidemill.authoring.tasks import TaskFunction
from tidemill.authoring.workflows import WorkflowFunction


@task
def extract(url: str) -> list[int]:
    return [len(url)]


@task(retries=3, timeout=2.5)
async def load(rows: list[int], token: str = "") -> dict[str, int]:
    return {"rows": len(rows)}


@task(retry=RetryPolicy(max_retries=1))
def sync(rows: list[int]) -> int:
    return len(rows)


@workflow
def flow(url: str) -> int:
    rows = assert_type(extract(url), list[int])
    big = load.options(queue="big").after(rows)
    done = assert_type(big(rows, token=secret("t")), dict[str, int])
    assert_type(sync(rows), int)
    return done["rows"]


@workflow(timeout=60)
def named(url: str, times: int = 1) -> None:
    extract(url)


async def use() -> None:
    assert_type(flow.run("x"), int)
    assert_type(await flow.run_async(url="x"), int)
    assert_type(flow.options(key="k").submit("x"), RunHandle[int])
    assert_type(flow.submit("x").result(), int)
    named.run("x", times=3)


extract(3)  # wrong: arg-type
load(extract("x"), token=3)  # wrong: arg-type
load(extract("x"), tokn="t")  # wrong: call-arg
flow.run()  # wrong: call-arg
flow.submit(url=3)  # wrong: arg-type
task(retrys=3)  # wrong: call-overload
extract.options(queue=3)  # wrong: arg-type
"""


def test_mypy_finds_the_types_and_the_mistakes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)]

    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout

    wrong = {
        number: line.rpartition("wrong: ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "# wrong" in line
    }
    found = {int(line.split(":")[1]): line for line in told.splitlines() if ": error:" in line}
    assert found.keys() == wrong.keys(), told
    assert [
        found[number] for number, code in wrong.items() if f"[{code}]" not in found[number]
    ] == []
