"""Running a workflow in this process: the real engine, no files, no servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.authoring import shop
from tidemill import RetryPolicy, WorkflowFailed, context, secret, task, workflow
from tidemill.domain.errors import InvalidInput

QUICK = RetryPolicy(max_retries=2, base_seconds=0.001)


@task
def add(left: int, right: int) -> int:
    """Adds."""
    return left + right


@task
def refuse(value: int) -> int:
    """Never works."""
    raise ValueError(f"not {value}")


def test_values_of_every_kind_travel_through_a_run() -> None:
    assert shop.orders.run("a", second="c") == "you, Quay 1: a c"


def test_calling_a_workflow_is_plain_python() -> None:
    @workflow
    def flow(start: int) -> int:
        return add(add(start, 1), 1)

    assert flow(1) == flow.run(1) == 3


def test_plain_python_cannot_run_a_task_that_is_async() -> None:
    @task
    async def wait() -> int:
        return 1

    @workflow
    def flow() -> int:
        return add(wait(), 1)

    with pytest.raises(TypeError, match=r"task wait is async, .*: use flow\.run\(\.\.\.\)"):
        flow()


def test_a_task_may_call_an_async_one_as_it_likes() -> None:
    @task
    async def wait() -> int:
        return 1

    @task
    def both() -> int:
        coroutine: Any = wait()
        result: int = asyncio.run(coroutine)
        return result

    @workflow
    def flow() -> int:
        return both()

    assert flow() == 1


def test_arguments_that_do_not_fit_name_the_workflow() -> None:
    with pytest.raises(
        TypeError, match=r"workflow orders\(.*: .* unexpected keyword argument 'frist'"
    ):
        shop.orders.run("a", frist="b")  # type: ignore[call-arg]


async def test_inside_a_loop_there_is_an_async_twin() -> None:
    @workflow
    def flow(start: int) -> int:
        return add(start, 1)

    assert await flow.run_async(1) == 2
    with pytest.raises(RuntimeError, match="use `await flow"):
        flow.run(1)


def test_the_result_has_the_type_that_the_function_says() -> None:
    @workflow
    def flow() -> shop.Order:
        return shop.fetch("a")

    assert flow.run() == shop.Order(id="a", total=12.5)


def test_a_workflow_that_returns_nothing_gives_none() -> None:
    @workflow
    def flow() -> None:
        add(1, 2)

    assert flow.run() is None


def test_a_failed_run_names_the_task_and_its_error() -> None:
    @workflow(retry=QUICK)
    def flow() -> int:
        return add(refuse(3), 1)

    with pytest.raises(
        WorkflowFailed, match="workflow flow failed: task refuse: ValueError: not 3"
    ) as e:
        flow.run()

    assert (e.value.task, e.value.state) == ("refuse", "FAILED")
    assert e.value.error is not None
    assert "test_run.py" in e.value.error.traceback


def test_a_failed_attempt_is_repeated() -> None:
    @task(retry=QUICK)
    def flaky() -> int:
        if context().attempt < 3:
            raise OSError("not yet")
        return context().attempt

    @workflow
    def flow() -> int:
        return flaky()

    assert flow.run() == 3


def test_queues_labels_and_isolation_do_not_matter_here() -> None:
    @task(queue="far", labels={"gpu": "a"}, isolation="process")
    def here() -> str:
        return context().task

    @workflow
    def flow() -> list[str]:
        return [here(), here.options(labels={"gpu": "b"})()]

    assert flow.run() == ["here", "here_2"]


def test_tasks_that_do_not_need_each_other_run_at_once() -> None:
    barrier = asyncio.Barrier(3)

    @task
    async def meet() -> int:
        async with asyncio.timeout(5):
            return await barrier.wait()

    @workflow
    def flow() -> list[int]:
        return [meet(), meet(), meet()]

    assert sorted(flow.run()) == [0, 1, 2]


def test_an_input_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="first: must be a string"):
        shop.orders.run(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing a required argument: 'first'"):
        shop.orders.run()  # type: ignore[call-arg]


def test_an_argument_that_does_not_fit_its_type_fails_the_task_for_good() -> None:
    @task
    def untyped() -> Any:
        return {"id": "a", "total": "much"}

    @workflow
    def flow() -> Any:
        return shop.pay(untyped())

    with pytest.raises(
        WorkflowFailed, match=r"InvalidInputs: inputs\.order: total: Expected `float`"
    ):
        flow.run()


def test_a_script_names_its_functions_as_workers_import_them(tmp_path: Path) -> None:
    script = tmp_path / "nightly.py"
    script.write_text(
        "from tidemill import task, workflow\n\n@task\ndef one() -> int:\n    return 1\n\n\n"
        "@workflow\ndef flow() -> int:\n    return one()\n\n\n"
        "print(one.name, flow.run())\n"
    )

    assert _run_python(script) == "nightly:one 1"


def _run_python(script: Path) -> str:
    command = [sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_secret_of_the_environment_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_SECRET_API_KEY", "opensesame")

    @task
    def login(token: str) -> int:
        return len(token)

    @workflow
    def flow() -> int:
        return login(secret("api-key"))

    assert (secret("api-key"), flow.run()) == ("opensesame", 10)


ORDER = shop.Order("d", 1.5)


def test_defaults_of_every_kind_are_filled_in() -> None:
    @workflow
    def flow(order: shop.Order = ORDER, tags: frozenset[str] = frozenset("ba")) -> Any:
        return [shop.pay(order), add(1, 1)]

    assert flow.definition.input["properties"]["tags"]["default"] == ["a", "b"]
    assert flow.run() == [{"orderId": "d", "paid": True}, 2]
