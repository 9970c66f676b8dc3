"""Random workflows: chains, fans, diamonds and layers, with every trigger rule and policy."""

from __future__ import annotations

from random import Random

from tidemill.domain.workflow import (
    InputSource,
    RetryPolicy,
    Source,
    TaskSpec,
    Timeouts,
    TriggerRule,
    Workflow,
)

QUEUES = ("default", "other")
EXECUTOR = "simulated"
_PARENTS_MAX = 4


def random_workflow(random: Random, name: str, size: int) -> Workflow:
    """A valid workflow of so many tasks."""
    edges = random.choice((_chain, _fan, _diamond, _layers, _layers))(random, size)
    tasks = tuple(_task(random, place, parents) for place, parents in enumerate(edges))
    return Workflow(
        name=name,
        tasks=tasks,
        output=random.choice((None, None, None, "@", f"t{size - 1}")),
        timeout_seconds=random.choice((None, None, None, None, 6.0, 25.0)),
        on_failure=random.choice(("continue", "continue", "stop")),
    )


def _chain(_random: Random, size: int) -> list[list[int]]:
    return [[place - 1] if place else [] for place in range(size)]


def _fan(_random: Random, size: int) -> list[list[int]]:
    middle = [[0] for _ in range(size - 2)]
    return [[], *middle, list(range(1, size - 1))]


def _diamond(random: Random, size: int) -> list[list[int]]:
    edges: list[list[int]] = [[]]
    while len(edges) < size:
        top = len(edges) - 1
        width = min(random.choice((2, 2, 3)), size - len(edges))
        sides = [[top] for _ in range(width)]
        edges += sides
        if len(edges) < size:
            edges.append(list(range(top + 1, top + 1 + width)))
    return edges


def _layers(random: Random, size: int) -> list[list[int]]:
    edges: list[list[int]] = []
    for place in range(size):
        count = 0 if place == 0 else random.choice((0, 1, 1, 2, 2, 3, _PARENTS_MAX))
        edges.append(sorted(random.sample(range(place), min(count, place))))
    return edges


def _task(random: Random, place: int, parents: list[int]) -> TaskSpec:
    inputs: dict[str, InputSource] = {}
    if parents and place % 3 == 0:
        inputs = {"above": Source(result=f"t{parents[0]}")}
    return TaskSpec(
        id=f"t{place}",
        executor=EXECUTOR,
        depends_on=tuple(f"t{parent}" for parent in parents),
        inputs=inputs,
        retry=_policy(random),
        timeouts=_timeouts(random),
        queue=random.choice(QUEUES),
        priority=random.choice((0, 0, 0, 5, -5)),
        trigger=_trigger(random, parents),
    )


def _trigger(random: Random, parents: list[int]) -> TriggerRule:
    if not parents or random.random() < 0.6:
        return TriggerRule.ALL_SUCCEEDED
    return random.choice(list(TriggerRule))


def _policy(random: Random) -> RetryPolicy:
    return RetryPolicy(
        max_retries=random.choice((0, 1, 2, 3)),
        base_seconds=random.choice((0.1, 0.5, 1.0)),
        factor=random.choice((1.0, 2.0, 3.0)),
        cap_seconds=random.choice((0.5, 2.0, 4.0)),
        jitter=random.choice((0.0, 0.1, 0.5, "full")),
        max_losses=random.choice((0, 1, 3, 20, 20)),
        final_errors=random.choice(((), ("Broken",))),
    )


def _timeouts(random: Random) -> Timeouts:
    return Timeouts(
        attempt_seconds=random.choice((None, None, None, 1.5, 3.0, 5.0)),
        queue_seconds=random.choice((None, None, None, None, 4.0, 20.0)),
    )
