"""tidemill.testing: a run in a unit test, with failures, stand-ins and hours that take no time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tidemill import (
    RetryLater,
    RetryPolicy,
    Timeouts,
    WorkflowFailed,
    context,
    secret,
    task,
    workflow,
)
from tidemill.domain.errors import InvalidInput
from tidemill.sdk.files import load_file
from tidemill.testing import InjectedFailure, TaskCall, VirtualClock, run
from tidemill.testing.clock import NothingHappens

EXAMPLES = Path(__file__).parents[2] / "examples"
HOURS = RetryPolicy(max_retries=3, base_seconds=3_600, cap_seconds=86_400)


@task
def fetch(name: str) -> str:
    """Cannot be called in a test."""
    raise AssertionError("the real world")


@task(retry=HOURS)
def double(text: str) -> str:
    """Twice."""
    return text * 2


@task
def join(parts: list[str]) -> str:
    """All in one."""
    return "+".join(parts)


@workflow
def flow(name: str, other: str = "o") -> str:
    """Two branches that meet."""
    return join([double(fetch(name)), double(fetch(other))])


STUBS: dict[str, Any] = {"fetch": lambda name: name.upper(), "fetch_2": "Z"}


def test_a_run_tells_its_result_and_every_state() -> None:
    told = run(flow, {"name": "a"}, stub=STUBS)

    assert told.result == "AA+ZZ"
    assert (told.state, set(told.states.values())) == ("SUCCEEDED", {"SUCCEEDED"})
    assert told.results["double_2"] == "ZZ"
    assert told.calls[0] == TaskCall("fetch", 1, {"name": "a"})
    assert [fact.type.value for fact in told.facts][-1] == "workflow.completed"


def test_a_task_fails_as_often_as_wanted_and_hours_pass_at_once() -> None:
    begun = monotonic()
    told = run(flow, {"name": "a"}, stub=STUBS, fail={"double": 3})

    assert monotonic() - begun < 60
    assert told.result == "AA+ZZ"
    assert told.attempts == {"fetch": 1, "double": 4, "fetch_2": 1, "double_2": 1, "join": 1}
    assert told.seconds == pytest.approx(3_600 * (1 + 2 + 4))


def test_a_task_that_always_fails_fails_the_run() -> None:
    told = run(flow, {"name": "a"}, stub=STUBS, fail={"double": OSError("gone")})

    assert (told.state, told.states["double"]) == ("FAILED", "FAILED")
    assert (told.states["join"], told.attempts["join"]) == ("UPSTREAM_FAILED", 0)
    assert told.errors["double"].message == "gone"
    with pytest.raises(WorkflowFailed, match="task double: OSError: gone"):
        _ = told.result


def test_each_attempt_can_end_in_its_own_way() -> None:
    errors = [ValueError("one"), None]

    told = run(flow, {"name": "a"}, stub=STUBS, fail={"double": errors, "double_2": 1})

    assert (told.attempts["double"], told.attempts["double_2"]) == (2, 2)


def test_the_error_of_a_test_is_known_by_its_name() -> None:
    told = run(flow, {"name": "a"}, stub=STUBS, fail={"join": 9})

    assert told.errors["join"].type == InjectedFailure.__name__


def test_an_input_that_is_no_dict_is_told() -> None:
    with pytest.raises(TypeError, match="input is a dict of arguments by name, not"):
        run(flow, ["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"fail": {"doubel": 1}}, {"stub": {"doubel": 1}}])
def test_a_task_that_is_not_there_is_told(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match='there is no such task, did you mean "double"'):
        run(flow, {"name": "a"}, **wrong)


def test_waiting_in_a_task_takes_no_time() -> None:
    @task
    async def wait() -> int:
        await asyncio.sleep(7_200)
        return context().attempt

    @workflow
    def waiting() -> int:
        return wait()

    told = run(waiting)

    assert (told.result, told.seconds) == (1, 7_200)


def test_a_timeout_of_an_attempt_passes_in_virtual_time() -> None:
    @task(timeout=600, retries=0)
    async def wait() -> None:
        await asyncio.sleep(7_200)

    @workflow
    def waiting() -> None:
        wait()

    told = run(waiting)

    assert told.errors["wait"].type == "AttemptTimeout"
    assert told.seconds == pytest.approx(600, abs=2)


def test_a_timeout_of_the_run_passes_in_virtual_time() -> None:
    @task
    async def wait() -> None:
        await asyncio.sleep(7_200)

    @workflow(timeout=600)
    def waiting() -> None:
        wait()

    told = run(waiting)

    assert told.state == "FAILED"
    assert told.seconds == pytest.approx(600, abs=20)


def test_a_task_says_itself_when_to_come_again() -> None:
    @task
    def patient() -> int:
        if context().attempt == 1:
            raise RetryLater(3_000)
        return context().attempt

    @workflow
    def waiting() -> int:
        return patient()

    told = run(waiting)

    assert told.result == 2
    assert told.seconds == pytest.approx(3_000)


def test_real_threads_are_waited_for() -> None:
    @task
    async def in_thread() -> int:
        return await asyncio.to_thread(lambda: 3)

    @workflow
    def threads() -> int:
        return in_thread()

    assert run(threads).result == 3


def test_a_task_that_never_ends_is_told() -> None:
    @task(timeouts=Timeouts())
    async def hang() -> None:
        await asyncio.Event().wait()

    @workflow
    def hanging() -> None:
        hang()

    with pytest.raises(NothingHappens, match="the run has not ended"):
        run(hanging, clock=VirtualClock(seconds_max=3_600))


async def test_async_tests_can_run_workflows_too() -> None:
    assert run(flow, {"name": "a"}, stub=STUBS).result == "AA+ZZ"


def test_one_clock_serves_one_run_after_the_other() -> None:
    clock = VirtualClock()

    first = run(flow, {"name": "a"}, stub=STUBS, fail={"double": 1}, clock=clock)
    second = run(flow, {"name": "a"}, stub=STUBS, clock=clock)

    assert first.seconds == pytest.approx(3_600)
    assert second.seconds == 0
    assert clock.seconds == pytest.approx(3_600)


def test_workflows_of_files_run_as_well() -> None:
    loaded = load_file(EXAMPLES / "hello.yaml")

    assert run(loaded.workflow).state == "SUCCEEDED"


def test_a_secret_of_a_test_reaches_the_task_and_nothing_else() -> None:
    @task
    def login(token: str) -> int:
        return len(token)

    @workflow
    def secretive() -> int:
        return login(secret("api-key"))

    told = run(secretive, secrets={"api-key": "opensesame"})

    assert told.result == 10
    assert "opensesame" not in repr(secretive.definition)
