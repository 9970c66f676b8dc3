"""Which operations meet, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

from tests.interleaving import operations
from tests.interleaving.explore import Explorer, Operation, Order
from tests.interleaving.invariants import ending, look, violations
from tests.interleaving.operations import Action
from tests.interleaving.stage import Stage

ACTIONS: tuple[Action, ...] = (
    operations.report_first,
    operations.report_second,
    operations.claim_left,
    operations.claim_right,
    operations.submit,
    operations.cancel,
    operations.stop,
    operations.reap,
    operations.arrive,
    operations.depart,
    operations.renew,
    operations.relay,
    operations.replay,
)
CONTROLS: tuple[Action, ...] = (
    operations.pause,
    operations.hold,
    operations.resume,
    operations.admit,
    operations.retry,
)
MEETING_CONTROLS: tuple[Action, ...] = (
    operations.report_first,
    operations.claim_right,
    operations.cancel,
    operations.depart,
    operations.replay,
)
"""One of each kind: what changes tasks, what claims, what changes the run, what gives back."""

PAIRS = (
    *combinations_with_replacement(ACTIONS, 2),
    *combinations_with_replacement(CONTROLS, 2),
    *product(CONTROLS, MEETING_CONTROLS),
    (operations.submit, operations.submit_other),
    (operations.report_first, operations.submit_and_relay),
    (operations.claim_right, operations.submit_and_relay),
)


class BrokenInvariant(AssertionError):
    """An order of statements after which something does not hold."""


async def check_pair(
    stage: Stage, first: Action, second: Action, *, reduce: bool = True
) -> Explorer:
    """Run a pair in all orders; BrokenInvariant when one of them leaves something wrong."""
    explorer = Explorer(stage.observer, reduce=reduce)

    async def begin() -> Sequence[Operation]:
        await stage.put_back(
            expired=operations.reap in {first, second},
            stopping=operations.stop in {first, second},
        )
        if {first, second} & {operations.hold, operations.resume, operations.admit}:
            await operations.pause(stage, "before")
        if operations.admit in {first, second}:
            await operations.hold(stage, "before")
            await operations.resume(stage, "before")
        return [lambda: first(stage, "A"), lambda: second(stage, "B")]

    async def check(order: Order) -> None:
        failed = [failure for failure in order.failures if failure is not None]
        if failed:
            raise BrokenInvariant(f"{failed[0]!r} in this order:\n{order}") from failed[0]
        seen = await look(stage)
        found = list(violations(seen))
        if found:
            raise BrokenInvariant(f"{[str(one) for one in found]} in this order:\n{order}")
        explorer.endings.add(ending(seen))

    await explorer.explore(begin, check)
    return explorer
