"""The operations that meet each other: each is what a real role does, from its first statement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.interleaving.stage import FOREVER_SECONDS, PAIR, WAITING, Stage
from tidemill.domain.errors import Conflict
from tidemill.domain.events import Lost, Succeeded
from tidemill.domain.identifiers import SECOND, SessionId, TaskKey
from tidemill.engine import dead_letters, runs
from tidemill.notifier.relay import Relay, RelayConfig
from tidemill.protocol.messages import Hello, Outcome
from tidemill.scheduler.handover import Arrival
from tidemill.scheduler.inbox import RunItem, TaskItem
from tidemill.scheduler.sessions import AttachedSession

Action = Callable[[Stage, str], Awaitable[object]]
"""An operation on a stage, carried out by the scheduler or relay of this name."""


def _succeeded(stage: Stage, *tasks: str) -> list[TaskItem]:
    return [
        TaskItem(token=stage.token(task), event=Succeeded(1, b"1"), reporter=SessionId("left"))
        for task in tasks
    ]


async def report_first(stage: Stage, name: str) -> None:
    """A turn with the outcomes of x and p; what becomes READY may go to `left`."""
    scheduler = stage.scheduler(name, stage.attached(stage.left))
    await stage.take_turns(scheduler, _succeeded(stage, "x", "p"))


async def report_second(stage: Stage, name: str) -> None:
    """A turn with the outcomes of q and y; what becomes READY may go to `right`."""
    scheduler = stage.scheduler(name, stage.attached(stage.right))
    await stage.take_turns(scheduler, _succeeded(stage, "q", "y"))


async def _claim(stage: Stage, name: str, session: AttachedSession) -> None:
    scheduler = stage.scheduler(name, session)
    scheduler.desk.backlog.note([WAITING])
    await stage.take_turns(scheduler, [])


async def claim_left(stage: Stage, name: str) -> None:
    """A turn that grants what waits to `left`, which has a free slot."""
    await _claim(stage, name, stage.attached(stage.left))


async def claim_right(stage: Stage, name: str) -> None:
    """A turn that grants what waits to `right`."""
    await _claim(stage, name, stage.attached(stage.right))


async def submit(stage: Stage, _name: str) -> None:
    """A start with a key that others use too."""
    await _submit(stage, {})


async def submit_other(stage: Stage, _name: str) -> None:
    """A start with the same key and another input: whoever comes second is refused."""
    await _submit(stage, {"other": True})


async def _submit(stage: Stage, value: dict[str, bool]) -> None:
    request = runs.StartRequest(workflow=PAIR, key="key", input=value)
    with suppress(Conflict):
        await runs.start(stage.store, stage.bus, stage.entropy, [request])


async def cancel(stage: Stage, _name: str) -> None:
    """The wish of a person that the run `mill` stops."""
    await runs.cancel(stage.store, stage.bus, "default", stage.mill)


async def stop(stage: Stage, name: str) -> None:
    """A turn that stops what is left of the run `mill`, which somebody has cancelled before."""
    scheduler = stage.scheduler(name)
    await stage.take_turns(scheduler, [RunItem(run_id=stage.mill)])


async def reap(stage: Stage, name: str) -> None:
    """A turn for tasks whose session has expired; they may go to `right` at once."""
    scheduler = stage.scheduler(name, stage.attached(stage.right))
    lost = [
        TaskItem(token=stage.token(task), event=Lost(1, SessionId("left"))) for task in ("x", "y")
    ]
    await stage.take_turns(scheduler, lost)


async def arrive(stage: Stage, name: str) -> None:
    """`left` comes back: it runs x, has finished y and q, and knows nothing of p."""
    hello = Hello(
        worker="left",
        slots=5,
        session=SessionId("left"),
        secret="secret",
        held=(stage.token("x"),),
        finished=tuple(Outcome(stage.token(task), Succeeded(1, b"1")) for task in "yq"),
    )
    arrival = Arrival(
        hello=hello,
        session_id=stage.entropy.session_id(),
        secret="unused",
        scheduler=name,
        ttl_seconds=FOREVER_SECONDS,
    )
    await stage.scheduler(name)._door._arrive(arrival)


async def depart(stage: Stage, name: str) -> None:
    """`left` says goodbye; what it held goes back."""
    session = stage.attached(stage.left)
    await stage.scheduler(name, session)._door._depart(session)


async def renew(stage: Stage, _name: str) -> None:
    """The renewal of a session that was heard from."""
    await stage.store.renew_sessions([SessionId("left")], round(FOREVER_SECONDS) * SECOND)


async def relay(stage: Stage, name: str) -> None:
    """One step of a relay: stamp, read, publish, move the cursor."""
    step = Relay(
        name=name, store=stage.store, bus=stage.bus, clock=stage.clock, config=RelayConfig()
    )
    await step.step()


async def submit_and_relay(stage: Stage, name: str) -> None:
    """A start that commits, and a relay that reads right after it."""
    await submit(stage, name)
    await relay(stage, name)


async def replay(stage: Stage, _name: str) -> None:
    """The dead letter is tried again."""
    key = TaskKey(stage.mill, stage.token("dead").position)
    with suppress(Conflict):  # somebody else did it, or the run is being stopped
        await dead_letters.replay(stage.store, stage.bus, "default", key)


async def pause(stage: Stage, _name: str) -> None:
    """The wish of a person that the run `mill` is paused."""
    with suppress(Conflict):  # it is being stopped
        await runs.pause(stage.store, stage.bus, "default", stage.mill)


async def hold(stage: Stage, name: str) -> None:
    """A turn that holds what is READY in the run `mill`, which somebody has paused before."""
    await stage.take_turns(stage.scheduler(name), [RunItem(run_id=stage.mill)])


async def resume(stage: Stage, _name: str) -> None:
    """The wish of a person that the run `mill`, paused before, goes on."""
    with suppress(Conflict):  # it is being stopped
        await runs.resume(stage.store, stage.bus, "default", stage.mill)


async def admit(stage: Stage, name: str) -> None:
    """A turn that admits what was held in the run `mill`, resumed before; it may go to `right`."""
    scheduler = stage.scheduler(name, stage.attached(stage.right))
    await stage.take_turns(scheduler, [RunItem(run_id=stage.mill)])


async def retry(stage: Stage, _name: str) -> None:
    """Everything that failed in the run `mill` is tried again."""
    with suppress(Conflict):  # somebody else did it, or the run is being stopped
        await runs.retry_failed(stage.store, stage.bus, "default", stage.mill)
