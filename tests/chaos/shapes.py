"""The workflows of the chaos, and how each of their runs must end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.chaos.work import mix, mix_all
from tidemill.domain.workflow import InputSource, RetryPolicy, Source, TaskSpec, Workflow

FAN = 10
SOON = RetryPolicy(max_retries=3, base_seconds=0.05, cap_seconds=0.2)
ONCE = RetryPolicy(max_retries=1, base_seconds=0.05)
SUCCEEDS = frozenset({"SUCCEEDED"})
FAILS = frozenset({"FAILED"})
IS_CANCELLED = frozenset({"CANCELLED"})
EITHER = SUCCEEDS | IS_CANCELLED  # cancelled at once: who comes first is open

Results = Mapping[int, int]


@dataclass(frozen=True)
class Shape:
    """A workflow, how often it is drawn, how its runs may end, and what its tasks return."""

    workflow: Workflow
    weight: int
    endings: frozenset[str]
    results: Callable[[int], Results]  # by position, from the input of the run
    cancel_seconds: tuple[float, float] | None = None  # after its start

    def parents(self, position: int) -> list[int]:
        """The positions that a task depends on."""
        places = {task.id: place for place, task in enumerate(self.workflow.tasks)}
        return [places[name] for name in self.workflow.tasks[position].depends_on]


def draw_shape(chance: Random) -> Shape:
    """Any of them, by weight."""
    return chance.choices(_ALL, _WEIGHTS)[0]


def _task(name: str, function: str, *parents: str, **fields: Any) -> TaskSpec:
    retry = fields.pop("retry", RetryPolicy())
    return TaskSpec(
        id=name,
        executor="python",
        params={"function": f"work:{function}"},
        depends_on=parents,
        inputs=fields,
        retry=retry,
    )


def _step(name: str, parent: str | None, by: int) -> TaskSpec:
    return _task(name, "step", *([parent] if parent else []), value=_from(parent), by=by)


def _from(parent: str | None) -> InputSource:
    return Source(input="salt") if parent is None else Source(result=parent)


def _single() -> Shape:
    workflow = Workflow(name="single", tasks=(_step("only", None, 1),))
    return Shape(workflow, 35, SUCCEEDS, lambda salt: {0: mix(salt, 1)})


def _chain_results(salt: int) -> Results:
    first = mix(salt, 1)
    second = mix(first, 2)
    return {0: first, 1: second, 2: mix(second, 3)}


def _chain_tasks() -> tuple[TaskSpec, ...]:
    return (_step("first", None, 1), _step("second", "first", 2), _step("third", "second", 3))


def _chain() -> Shape:
    return Shape(Workflow(name="chain", tasks=_chain_tasks()), 20, SUCCEEDS, _chain_results)


def _hasty() -> Shape:
    workflow = Workflow(name="hasty", tasks=_chain_tasks())
    return Shape(workflow, 5, EITHER, _chain_results, cancel_seconds=(0.0, 0.3))


def _diamond() -> Shape:
    tasks = (
        _step("top", None, 1),
        _step("left", "top", 2),
        _step("right", "top", 3),
        _task("bottom", "join", "left", "right", a=_from("left"), b=_from("right")),
    )

    def results(salt: int) -> Results:
        top = mix(salt, 1)
        left, right = mix(top, 2), mix(top, 3)
        return {0: top, 1: left, 2: right, 3: mix_all({"a": left, "b": right})}

    return Shape(Workflow(name="diamond", tasks=tasks), 12, SUCCEEDS, results)


def _fan() -> Shape:
    names = [f"branch-{place}" for place in range(FAN)]
    branches = [_step(name, "first", place) for place, name in enumerate(names)]
    sources = {f"part_{place}": _from(name) for place, name in enumerate(names)}
    last = _task("last", "join", *names, **sources)
    workflow = Workflow(name="fan", tasks=(_step("first", None, 1), *branches, last))

    def results(salt: int) -> Results:
        first = mix(salt, 1)
        parts = [mix(first, place) for place in range(FAN)]
        joined = mix_all({f"part_{place}": part for place, part in enumerate(parts)})
        return {0: first, **dict(enumerate(parts, 1)), FAN + 1: joined}

    return Shape(workflow, 4, SUCCEEDS, results)


def _flaky() -> Shape:
    tasks = (
        _task("flaky", "flaky_step", value=_from(None), by=1, failures=2, retry=SOON),
        _step("after", "flaky", 2),
    )

    def results(salt: int) -> Results:
        return {0: mix(salt, 1), 1: mix(mix(salt, 1), 2)}

    return Shape(Workflow(name="flaky", tasks=tasks), 10, SUCCEEDS, results)


def _doomed() -> Shape:
    tasks = (
        _step("before", None, 1),
        _task("doomed", "doomed_step", "before", retry=ONCE),
        _task("never", "doomed_step", "doomed"),
    )
    return Shape(Workflow(name="doomed", tasks=tasks), 4, FAILS, lambda salt: {0: mix(salt, 1)})


def _slow() -> Shape:
    tasks = (
        _task("slow", "slow_step", value=_from(None), by=1, seconds=1.0),
        _step("after", "slow", 2),
    )

    def results(salt: int) -> Results:
        return {0: mix(salt, 1), 1: mix(mix(salt, 1), 2)}

    return Shape(Workflow(name="slow", tasks=tasks), 6, SUCCEEDS, results)


def _long() -> Shape:
    tasks = (_task("waits", "wait_for_cancel", seconds=600.0), _step("never", "waits", 1))
    workflow = Workflow(name="long", tasks=tasks)
    return Shape(workflow, 4, IS_CANCELLED, lambda _: {}, cancel_seconds=(0.2, 3.0))


_ALL = [make() for make in (_single, _chain, _hasty, _diamond, _fan, _flaky, _doomed, _slow, _long)]
_WEIGHTS = [shape.weight for shape in _ALL]
SHAPES = {shape.workflow.name: shape for shape in _ALL}
