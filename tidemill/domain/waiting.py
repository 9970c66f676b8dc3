"""Why a READY task waits: what the workers that are there lack for it, in words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidemill.domain.routes import PYTHON, is_offered, read_route


class WorkerStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as a waiting task sees it."""

    queues: tuple[str, ...]
    labels: dict[str, str]
    offers: tuple[str, ...]
    slots: int
    busy: int = 0


def explain_wait(route: str, workers: Sequence[WorkerStanding]) -> str | None:
    """Why a task of this route is not granted; None when some worker has a free slot for it.

    The workers are those of the task's namespace.
    """
    queue, need, labels = read_route(route)
    if not workers:
        return "no worker is connected"
    serving = [one for one in workers if queue in one.queues]
    if not serving:
        return f"no worker serves queue {queue}"
    wanted = ", ".join(f"{name}={value}" for name, value in labels)
    serving = [one for one in serving if dict(labels).items() <= one.labels.items()]
    if not serving:
        return f"no worker of queue {queue} has {wanted}"
    serving = [one for one in serving if is_offered(need, one.offers)]
    if not serving:
        having = f" with {wanted}" if wanted else ""
        return f"no worker offers {need.replace(':', ' ', 1)} on queue {queue}{having}{_fix(need)}"
    return _explain_busy(serving)


def _fix(need: str) -> str:
    """How to get a worker that offers this; which file that takes is not known here."""
    executor, _, function = need.partition(":")
    if executor != PYTHON or not function:
        return ""
    return f": start one with --import of module {function.partition(':')[0]}"


def _explain_busy(serving: Sequence[WorkerStanding]) -> str | None:
    slots = sum(one.slots for one in serving)
    if not slots:
        return "its workers take no more work"
    if any(one.busy < one.slots for one in serving):
        return None
    return f"all {slots} slots are busy" if slots > 1 else "the only slot is busy"
