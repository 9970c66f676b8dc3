"""The executors that do nothing real, and how executors are found."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.roles.executor_stage import a_call, failure, run
from tests.roles.worker_stage import a_workshop
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.sdk.context import FakeVoice, TaskCancelled
from tidemill.worker.library import load_library
from tidemill.worker.plugins import GROUP, PluginExecutor, find_executors


class ListeningClock(SystemClock):
    """Never waits, and remembers for how long it should have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class FixedEntropy(SystemEntropy):
    """Chance that always falls the same."""

    def __init__(self, chance: float) -> None:
        self._chance = chance

    def fraction(self) -> float:
        return self._chance


@pytest.fixture
def executors() -> dict[str, Any]:
    return find_executors(a_workshop())


def test_every_executor_of_the_box_is_installed(executors: dict[str, Any]) -> None:
    built_in = {"python", "shell", "http", "noop", "sleep"}
    job_types = {"default", "compute", "notify", "transform", "flaky"}
    assert set(executors) >= built_in | job_types


async def test_a_plug_in_that_cannot_be_loaded_fails_its_tasks_alone() -> None:
    point = EntryPoint("docker", "no_such_package:Docker", GROUP)

    kind, final, message = await failure(PluginExecutor(point, a_workshop()), a_call({}))

    assert (kind, final) == ("ExecutorBroken", False)
    assert "no_such_package:Docker" in message


async def test_noop_returns_null(executors: dict[str, Any]) -> None:
    assert await run(executors["noop"], a_call({})) is None


async def test_sleep_waits(executors: dict[str, Any]) -> None:
    before = asyncio.get_running_loop().time()

    await run(executors["sleep"], a_call({"seconds": 0.02}))

    assert asyncio.get_running_loop().time() - before >= 0.02


async def test_compute_returns_the_same_number_each_time(executors: dict[str, Any]) -> None:
    call = a_call({"iterations": 60_000})

    assert await run(executors["compute"], call) == await run(executors["compute"], call)


async def test_compute_stops_when_it_is_asked_to(executors: dict[str, Any]) -> None:
    voice = FakeVoice()
    call = a_call({"iterations": 10**12}, voice=voice)
    running = asyncio.create_task(run(executors["compute"], call))
    voice.cancelled = True

    with pytest.raises(TaskCancelled):
        await asyncio.wait_for(running, 5)


@pytest.mark.parametrize(("attempt", "fails"), [(1, True), (2, True), (3, False)])
async def test_flaky_fails_on_exactly_its_first_attempts(
    executors: dict[str, Any], attempt: int, fails: bool
) -> None:
    call = a_call({"fail_attempts": 2}, attempt=attempt)

    if fails:
        assert (await failure(executors["flaky"], call))[:2] == ("Flaky", False)
    else:
        assert await run(executors["flaky"], call) == 3


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("default", 1, 50),
        ("compute", 5, 24),
        ("notify", 2, 11),
        ("transform", 3, 17),
        ("flaky", 1, 5),
    ],
)
@pytest.mark.parametrize("chance", [0.0, 0.999_999])
async def test_a_job_waits_for_a_random_while(
    name: str, least: int, most: int, chance: float
) -> None:
    clock = ListeningClock()
    workshop = a_workshop()
    workshop = replace(workshop, clock=clock, entropy=FixedEntropy(chance))

    await run(find_executors(workshop)[name], a_call({}))

    assert [round(seconds * 1_000) for seconds in clock.slept] == [most if chance else least]


async def test_a_payload_tells_what_params_do_not(executors: dict[str, Any]) -> None:
    told = {"failure_rate": 1.0, "anything": "else"}

    kind, final, _ = await failure(executors["flaky"], a_call({}, {"payload": told}))

    assert (kind, final) == ("Flaky", False)
    assert await run(executors["transform"], a_call({}, {"payload": told})) == told
    assert await run(executors["noop"], a_call({}, {"payload": [1]})) is None


def test_a_payload_may_bring_what_is_missing(executors: dict[str, Any]) -> None:
    assert executors["sleep"].rehearse({}, ["payload"]) == []
    assert executors["sleep"].rehearse({}, []) == ["params: the field 'seconds' is missing"]


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("noop", {"x": 1}, "params.x: there is no such field"),
        ("sleep", {}, "params: the field 'seconds' is missing"),
        ("sleep", {"seconds": -1}, "params.seconds: expected `float` >= 0"),
        ("compute", {"iterations": "many"}, "params.iterations: expected `int`, got `str`"),
        ("flaky", {"failure_rate": 2}, "params.failure_rate: expected `float` <= 1"),
    ],
)
def test_wrong_params_are_named(
    executors: dict[str, Any], name: str, params: dict[str, Any], words: str
) -> None:
    assert words in executors[name].check(params)[0]


@pytest.mark.parametrize(
    ("name", "params", "problems"),
    [
        (
            "sleep",
            {"second": 1},
            [
                'params.second: there is no such field, did you mean "seconds"?',
                "params: the field 'seconds' is missing",
            ],
        ),
        ("noop", {"x": 1}, ["params.x: there is no such field; it takes none"]),
        (
            "flaky",
            {"failure_rate": 7, "fail_attempts": "2"},
            [
                "params.failure_rate: expected `float` <= 1.0",
                "params.fail_attempts: expected `int`, got `str`",
            ],
        ),
    ],
)
def test_every_problem_of_the_params_is_told_at_once(
    executors: dict[str, Any], name: str, params: dict[str, Any], problems: list[str]
) -> None:
    assert executors[name].rehearse(params, ()) == problems


async def test_the_plug_in_of_the_documentation_works_as_printed(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "executors.md").read_text()
    [source] = re.findall(r"```python\n(from tidemill\.worker.*?)```", page, re.DOTALL)
    (tmp_path / "my_package.py").write_text(source)
    load_library([str(tmp_path / "my_package.py")])
    plug_in = PluginExecutor(EntryPoint("slow-echo", "my_package:SlowEcho", GROUP), a_workshop())

    assert plug_in.rehearse({}, ()) == ["params.text: is missing"]
    assert await run(plug_in, a_call({"text": "a"}, {"b": 1})) == {"text": "a", "inputs": {"b": 1}}
