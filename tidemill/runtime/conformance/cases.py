"""The cases: what a worker must do, one promise of docs/protocol.md each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded
from tidemill.domain.identifiers import RunId, Token
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Reason, TaskRun, TaskState
from tidemill.domain.workflow import RetryPolicy, Source, TaskSpec
from tidemill.protocol.messages import PROTOCOL_VERSION, Assignment, Assignments, Goodbye, Hello
from tidemill.runtime.conformance.stage import CaseFailed, Stage

EXECUTORS = ("echo", "fail", "final", "sleep")
SLOTS_MAX = 64
BATCH = 40
PING_GAP_SECONDS = 2.5
IDLE_SECONDS = 5.0
QUICK = RetryPolicy(max_retries=2, base_seconds=0.05, jitter=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A promise, and how it is tried."""

    name: str
    run: Callable[[Stage], Awaitable[None]]
    seconds: float = 30.0
    unknown_fields: bool = False
    token_works: bool = True


async def greets(stage: Stage) -> None:
    """Hello comes first and says who and what."""
    hello = await stage.hello()
    missing = sorted(set(EXECUTORS) - set(hello.executors))
    _check(hello.protocol == PROTOCOL_VERSION, f"protocol is {hello.protocol}")
    _check(bool(hello.worker), "worker is empty")
    _check(not missing, f"executors lack {', '.join(missing)}")
    _check(1 <= hello.slots <= SLOTS_MAX, f"slots are {hello.slots}, not 1 to {SLOTS_MAX}")
    _check("default" in hello.queues, "queues lack default")
    _check(hello.session is None and hello.secret is None, "a first Hello has a session")
    _check(not hello.held and not hello.finished, "a first Hello brings grants along")


async def runs_a_batch(stage: Stage) -> None:
    """More tasks than slots all end."""
    run_id = await stage.start(*(_task(f"t{number}", "echo") for number in range(BATCH)))
    run = await stage.ended(run_id, 20)
    _check(run.state is RunState.SUCCEEDED, f"the run is {run.state}")


async def respects_slots(stage: Stage) -> None:
    """Fills all its slots at once, and hands back what comes beyond them."""
    slots = (await stage.hello()).slots
    run_id = await stage.start(*(_sleep(f"t{number}", 4) for number in range(slots)))
    tokens = set(await stage.granted(run_id, slots))
    extra = Token(stage.entropy.run_id(), 0, 1)
    stage.send(Assignments((_beyond(extra),)))

    report = await stage.until(
        lambda: next((one.report for one in stage.outcomes() if one.token == extra), None),
        "answers an assignment beyond its slots",
    )
    _check(isinstance(report, Released), f"it is {type(report).__name__}, not Released")
    await stage.holdings(1, lambda one: tokens <= set(one.held), "holds all its slots at once")
    _check((await stage.ended(run_id)).state is RunState.SUCCEEDED, "the run failed")


async def returns_results(stage: Stage) -> None:
    """Results reach the store, and through it the inputs of children."""
    first = _task("first", "echo", params={"text": "grüße", "list": [1, 2.5, None, True]})
    inputs: dict[str, Any] = {
        "plain": "a",
        "const": Source(const={"k": [1]}),
        "whole": Source(input="name"),
        "deep": Source(result="first", path="params.text"),
        "all": Source(result="first"),
    }
    run_id = await stage.start(first, _task("second", "echo", inputs=inputs), given={"name": "n"})
    await stage.ended(run_id)

    once = {"params": {"text": "grüße", "list": [1, 2.5, None, True]}, "inputs": {}}
    expected = {"plain": "a", "const": {"k": [1]}, "whole": "n", "deep": "grüße", "all": once}
    _check_equal(await stage.result(run_id, 0), once)
    _check_equal(await stage.result(run_id, 1), {"params": {}, "inputs": expected})


async def reports_failures(stage: Stage) -> None:
    """A failure has the type and the message that it was given."""
    params = {"type": "CardDeclined", "message": "the card was declined"}
    task = _task("t", "fail", params=params, retry=RetryPolicy(max_retries=0))
    run_id = await stage.start(task)
    await stage.ended(run_id)

    stored = await stage.task(run_id)
    _check(stored.state is TaskState.FAILED, f"the task is {stored.state}")
    assert stored.error is not None
    _check_equal((stored.error.type, stored.error.message), tuple(params.values()))


async def retries_are_new_attempts(stage: Stage) -> None:
    """Each retry is an assignment of its own, reported under its own epoch."""
    run_id = await stage.start(_task("t", "fail", params=_why(), retry=QUICK))
    await stage.ended(run_id)

    stored = await stage.task(run_id)
    _check_ended(stored, Reason.EXHAUSTED, 3)
    reported = {one.token.epoch for one in stage.outcomes() if isinstance(one.report, Failed)}
    _check(reported == {1, 2, 3}, f"failures were reported for the epochs {sorted(reported)}")


async def final_errors_are_final(stage: Stage) -> None:
    """A failure marked final is not tried again."""
    run_id = await stage.start(_task("t", "final", params=_why(), retry=QUICK))
    await stage.ended(run_id)

    stored = await stage.task(run_id)
    _check_ended(stored, Reason.FINAL_ERROR, 1)


async def cancels_and_confirms(stage: Stage) -> None:
    """A task that is asked to stop stops, and the worker says so."""
    run_id = await stage.start(_sleep("t", 60))
    token = (await stage.granted(run_id))[0]
    await stage.cancel(run_id)
    run = await stage.ended(run_id, 6)

    _check(run.state is RunState.CANCELLED, f"the run is {run.state}")
    reports = [one.report for one in stage.outcomes() if one.token == token]
    confirmed = any(isinstance(report, CancelConfirmed) for report in reports)
    _check(confirmed, f"no CancelConfirmed, but {_kinds(reports)}")


async def pings_when_idle(stage: Stage) -> None:
    """Something is said at least every second or so."""
    stream = await stage.stream()
    await stage.clock.sleep(IDLE_SECONDS)
    times = [at for at, _ in stream.heard] + [stage.clock.monotonic()]
    longest = max(after - before for before, after in pairwise(times))
    _check(longest <= PING_GAP_SECONDS, f"nothing was said for {longest:.1f} s")


async def sends_holdings(stage: Stage) -> None:
    """Holdings come again and again, and name what is held and the usable slots."""
    slots = (await stage.hello()).slots
    idle = await stage.holdings(1, lambda one: not one.held, "sends Holdings while it is idle")
    _check(idle.slots == slots, f"Holdings say {idle.slots} slots, Hello said {slots}")
    await _held(stage, await stage.start(_sleep("t", 8)))


async def repeats_unacknowledged_outcomes(stage: Stage) -> None:
    """An outcome that was not acknowledged comes again on the next stream."""
    await stage.stream()
    stage.door.lose_next_outcomes = True
    run_id = await stage.start(_task("t", "echo"))
    await stage.until(lambda: stage.door.lost, "reports an outcome")
    await stage.stream(2)
    run = await stage.ended(run_id)

    _check(run.state is RunState.SUCCEEDED, f"the run is {run.state}")
    await _check_nothing_spent(stage, run_id, "the outcome was not repeated: the task ran again")


async def keeps_running_attempts(stage: Stage) -> None:
    """After a lost connection the same attempts go on, under the same session's secret."""
    run_id = await stage.start(_sleep("t", 6))
    token = await _held(stage, run_id)
    first = await stage.stream()
    stage.network.cut()
    again = (await stage.stream(2)).hello
    run = await stage.ended(run_id)

    _check_came_back(first.welcome, again)
    _check(again is not None and token in again.held, "the attempt is not in Hello.held")
    _check(run.state is RunState.SUCCEEDED, f"the run is {run.state}")
    await _check_nothing_spent(stage, run_id, "the attempt was not kept: the task ran again")


async def obeys_keep(stage: Stage) -> None:
    """What Welcome does not keep is stopped, and nothing is reported about it."""
    run_id = await stage.start(_sleep("t", 60))
    token = await _held(stage, run_id)
    stage.door.rewrite = lambda hello: msgspec.structs.replace(hello, held=())
    stage.network.cut()
    await stage.stream(2)
    await stage.holdings(2, lambda one: token not in one.held, "stops what is not kept")

    about = [one for one in stage.door.streams[1].outcomes if one.token == token]
    _check(not about, f"reported {_kinds([one.report for one in about])} about it")


async def notices_silence(stage: Stage) -> None:
    """A connection on which nothing comes any more is given up and made anew."""
    first = await stage.stream()
    await stage.clock.sleep(1)
    stage.network.freeze()
    again = (await stage.stream(2, 8)).hello
    _check_came_back(first.welcome, again)


async def accepts_unknown_fields(stage: Stage) -> None:
    """Fields of a later release are ignored."""
    run_id = await stage.start(*(_task(f"t{number}", "echo") for number in range(8)))
    run = await stage.ended(run_id)
    _check(run.state is RunState.SUCCEEDED, f"the run is {run.state}")
    _check(len(stage.door.streams) == 1, "the stream was given up on the way")


async def leaves_with_goodbye(stage: Stage) -> None:
    """SIGTERM: what runs is handed back unspent, Goodbye is said, the process ends with 0."""
    run_id = await stage.start(_sleep("t", 60))
    await _held(stage, run_id)
    stage.terminate()
    status = await stage.left(15)

    _check(bool(stage.door.streams[0].of_kind(Goodbye)), "no Goodbye was said")
    _check(status == 0, f"the process ended with {status}")
    stored = await stage.task(run_id)
    _check(stored.state is TaskState.READY, f"the task is {stored.state}, not READY again")
    _check(not (stored.failures or stored.losses), "an attempt was spent")


async def ends_when_refused(stage: Stage) -> None:
    """A token that is not accepted ends the worker with an error, instead of a retry for ever."""
    status = await stage.left(10)
    _check(status != 0, "the process ended with 0, as if all were well")


CASES = (
    Case(name="greets properly", run=greets),
    Case(name="runs a batch", run=runs_a_batch),
    Case(name="respects slots", run=respects_slots),
    Case(name="returns results", run=returns_results),
    Case(name="reports failures with type and message", run=reports_failures),
    Case(name="retries are new attempts", run=retries_are_new_attempts),
    Case(name="final errors are final", run=final_errors_are_final),
    Case(name="cancels and confirms", run=cancels_and_confirms),
    Case(name="pings when idle", run=pings_when_idle),
    Case(name="sends Holdings", run=sends_holdings),
    Case(name="repeats unacknowledged outcomes", run=repeats_unacknowledged_outcomes),
    Case(name="keeps running attempts over a reconnect", run=keeps_running_attempts),
    Case(name="obeys Welcome.keep", run=obeys_keep),
    Case(name="notices silence", run=notices_silence),
    Case(name="accepts unknown fields", run=accepts_unknown_fields, unknown_fields=True),
    Case(name="leaves with Goodbye on SIGTERM", run=leaves_with_goodbye),
    Case(name="ends when its token is refused", run=ends_when_refused, token_works=False),
)


async def _held(stage: Stage, run_id: RunId) -> Token:
    """The only grant of a run, once the worker has said that it holds it."""
    token = (await stage.granted(run_id))[0]
    await stage.holdings(1, lambda one: token in one.held, "names what it runs in Holdings")
    return token


def _task(name: str, executor: str, **fields: Any) -> TaskSpec:
    return TaskSpec(id=name, executor=executor, **fields)


def _sleep(name: str, seconds: float) -> TaskSpec:
    return _task(name, "sleep", params={"seconds": seconds})


def _why() -> dict[str, str]:
    return {"type": "Boom", "message": "it broke"}


def _beyond(token: Token) -> Assignment:
    return Assignment(
        token=token,
        attempt=1,
        workflow="conformance",
        task="beyond",
        executor="sleep",
        params=b'{"seconds": 60}',
        inputs=b"{}",
        run_input=b"{}",
    )


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CaseFailed(otherwise)


def _check_equal(found: object, expected: object) -> None:
    _check(found == expected, f"found {found!r}, expected {expected!r}")


def _check_ended(task: TaskRun, reason: Reason, failures: int) -> None:
    found = f"{task.reason} after {task.failures} failures"
    wanted = f"{reason} after {failures}"
    _check((task.reason, task.failures) == (reason, failures), f"ended {found}, not {wanted}")


def _check_came_back(welcome: Any, hello: Hello | None) -> None:
    shown = (hello.session, hello.secret) if hello is not None else None
    _check(shown == (welcome.session, welcome.secret), "Hello does not show session and secret")


async def _check_nothing_spent(stage: Stage, run_id: RunId, otherwise: str) -> None:
    stored = await stage.task(run_id)
    spent = (stored.epoch, stored.failures, stored.losses)
    given = [token for token in stage.assigned() if token.run_id == run_id]
    _check(spent == (1, 0, 0) and len(given) == 1, otherwise)
    done = [one for one in stage.outcomes() if isinstance(one.report, Succeeded)]
    _check(bool(done), "no outcome was reported")


def _kinds(reports: list[Any]) -> str:
    return ", ".join(type(report).__name__ for report in reports) or "nothing"
