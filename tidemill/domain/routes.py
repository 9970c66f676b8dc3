"""Routes: a task's queue and labels folded into one text, and who may serve it."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def fold_route(queue: str, labels: Mapping[str, str]) -> str:
    """One text for a queue and the labels that a worker must have; `default?gpu=a100&zone=eu`."""
    if not labels:
        return queue
    return queue + "?" + "&".join(f"{name}={value}" for name, value in sorted(labels.items()))


def serves(route: str, queues: Collection[str], labels: Mapping[str, str]) -> bool:
    """Whether a worker of these queues and labels may run tasks of this route."""
    queue, _, required = route.partition("?")
    if queue not in queues:
        return False
    pairs = (pair.partition("=") for pair in required.split("&") if pair)
    return all(labels.get(name) == value for name, _, value in pairs)
