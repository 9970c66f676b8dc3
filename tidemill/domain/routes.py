"""Routes: what a worker must have to run a task, folded into one text, and who may serve it.

`queue!need?labels`, such as `default!python:flow:extract?gpu=a100`. The need is the executor, and
for functions of Python the function too. A route without a need, as former releases wrote them,
asks for queue and labels alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tidemill.domain.workflow import NAME_CHARACTERS_MAX, OUTPUT_ID

PYTHON = "python"
"""The executor whose tasks need one function each."""

OFFERS_MAX = 10_000
"""Of one worker."""

FUNCTION_CHARACTERS_MAX = 256
OFFER_CHARACTERS_MAX = NAME_CHARACTERS_MAX + 1 + FUNCTION_CHARACTERS_MAX
_FUNCTION = re.compile(r"[^\s!?&:]+:[^\s!?&:]+")


class Route(NamedTuple):
    """A route, taken apart again."""

    queue: str
    need: str  # empty: any worker will do
    labels: tuple[tuple[str, str], ...]


def need_of(executor: str, params: Mapping[str, Any]) -> str:
    """What a worker must offer to run a task: `shell`, `python:flow:extract`; empty for anything.

    Outputs are evaluated by every worker. A function that nobody could offer is left to any
    worker, which fails the task with the reason: waiting for it would be in vain.
    """
    if executor == OUTPUT_ID:
        return ""
    if executor != PYTHON:
        return executor
    function = params.get("function")
    return f"{PYTHON}:{function}" if is_function(function) else ""


def is_function(name: object) -> bool:
    """Whether this could be the name of a function, `module:function`."""
    return (
        isinstance(name, str)
        and len(name) <= FUNCTION_CHARACTERS_MAX
        and name.isprintable()
        and _FUNCTION.fullmatch(name) is not None
    )


def fold_route(queue: str, labels: Mapping[str, str], need: str = "") -> str:
    """One text for a queue, the labels that a worker must have, and what it must offer."""
    place = f"{queue}!{need}" if need else queue
    if not labels:
        return place
    return place + "?" + "&".join(f"{name}={value}" for name, value in sorted(labels.items()))


@lru_cache(maxsize=4_096)
def read_route(route: str) -> Route:
    """The parts of a route."""
    place, _, required = route.partition("?")
    queue, _, need = place.partition("!")
    pairs = (pair.partition("=") for pair in required.split("&") if pair)
    return Route(queue, need, tuple((name, value) for name, _, value in pairs))


def serves(
    route: str, queues: Collection[str], labels: Mapping[str, str], offers: Collection[str] = ()
) -> bool:
    """Whether a worker of these queues, labels and offers may run tasks of this route."""
    queue, need, required = read_route(route)
    if queue not in queues or not is_offered(need, offers):
        return False
    return all(labels.get(name) == value for name, value in required)


def is_offered(need: str, offers: Collection[str]) -> bool:
    """Whether offers satisfy a need. An executor alone offers all that it can run.

    A worker that names no offers, as those of other makers may, is taken to offer anything.
    """
    return not need or not offers or need in offers or need.partition(":")[0] in offers
