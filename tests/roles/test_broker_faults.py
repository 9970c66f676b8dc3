"""Workers over a broker that fails, and workers that fail behind it."""

from __future__ import annotations

import pytest

from tests.roles.broker_mill import BrokerMill, Hired, on_a_broker_mill
from tests.roles.mill import a_chain, a_step
from tidemill.domain.identifiers import RunId, SessionId
from tidemill.domain.run import RunState
from tidemill.domain.task_run import TaskState
from tidemill.domain.workflow import RetryPolicy
from tidemill.ports.broker import Message

RECOVERY_SECONDS = 25
NAMES = ["tasks.default.default", "reports", "heartbeats", "answers"]


async def one_running(stage: BrokerMill, hired: Hired) -> RunId:
    """A task that the worker runs, while the gate is closed."""
    stage.gate.clear()
    run_id = await stage.mill.start(a_step("t"))
    await stage.begun(1)
    assert stage.ran == [(hired.name, "t")]
    return run_id


@on_a_broker_mill
async def test_what_a_killed_worker_ran_runs_elsewhere_in_time(stage: BrokerMill) -> None:
    hired = stage.hire("killed")
    run_id = await one_running(stage, hired)
    stage.hire("other")
    stage.gate.set()

    hired.kill()
    await stage.begun(2, RECOVERY_SECONDS)
    await stage.mill.ended(run_id, 5)

    assert stage.ran == [("killed", "t"), ("other", "t")]
    assert await stage.spent(run_id) == (0, 1)


@on_a_broker_mill
async def test_what_a_killed_worker_had_in_hand_runs_elsewhere_unspent(stage: BrokerMill) -> None:
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    hired = stage.hire("killed")
    run_id = await stage.mill.start(*a_chain(1), a_step("beside"))
    await stage.until(run_id, TaskState.RUNNING)
    await stage.mill.clock.sleep(0.5)

    hired.kill()
    stage.broker.copies = lambda _topic, _kind: 1
    stage.hire("other")
    await stage.mill.ended(run_id, RECOVERY_SECONDS)

    assert sorted(stage.ran) == [("other", "beside"), ("other", "t0")]
    assert await stage.spent(run_id) == (0, 0)


@on_a_broker_mill
async def test_the_dead_take_up_nothing_however_late_their_word_arrives(
    stage: BrokerMill,
) -> None:
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    hired = stage.hire("killed")
    run_id = await stage.mill.start(a_step("t"))
    await stage.until(run_id, TaskState.RUNNING)
    await stage.mill.clock.sleep(0.5)
    hired.kill()
    await stage.mill.clock.sleep(10)

    stage.broker.copies = lambda _topic, _kind: 1
    late = [m for topic, m in stage.broker.sent if topic == "reports" and b"started" in m.value]
    await stage.broker.send("reports", late[:1])
    stage.hire("other")
    await stage.mill.ended(run_id, RECOVERY_SECONDS)

    assert await stage.spent(run_id) == (0, 0)


@on_a_broker_mill
async def test_nothing_is_lost_or_spent_while_the_broker_is_down_for_a_minute(
    stage: BrokerMill,
) -> None:
    hired = stage.hire()
    run_id = await one_running(stage, hired)
    later = await stage.mill.start(*a_chain(2))
    await stage.begun(2)

    stage.broker.go_down()
    await stage.mill.clock.sleep(30)
    stage.gate.set()
    await stage.mill.clock.sleep(30)
    stage.broker.is_down = False
    ended = [await stage.mill.ended(one, 10) for one in (run_id, later)]

    assert [run.state for run in ended] == [RunState.SUCCEEDED] * 2
    assert sorted(task for _, task in stage.ran) == ["t", "t0", "t1"]
    assert [await stage.spent(one) for one in (run_id, later)] == [(0, 0), (0, 0)]


@on_a_broker_mill
async def test_a_worker_that_died_while_the_broker_was_down_is_missed_afterwards(
    stage: BrokerMill,
) -> None:
    hired = stage.hire("killed")
    run_id = await one_running(stage, hired)
    stage.gate.set()

    stage.broker.go_down()
    hired.kill()
    await stage.mill.clock.sleep(60)
    assert await stage.spent(run_id) == (0, 0)
    stage.broker.is_down = False
    stage.hire("other")
    await stage.mill.ended(run_id, RECOVERY_SECONDS)

    assert await stage.spent(run_id) == (0, 1)


@on_a_broker_mill
async def test_the_broker_may_be_down_when_everything_starts(stage: BrokerMill) -> None:
    stage.broker.go_down()
    stage.hire()
    run_id = await stage.mill.start(*a_chain(2))
    await stage.mill.clock.sleep(20)

    stage.broker.is_down = False

    assert (await stage.mill.ended(run_id, 15)).state is RunState.SUCCEEDED
    assert await stage.spent(run_id) == (0, 0)


@on_a_broker_mill
async def test_a_binding_that_comes_after_the_release_is_stale(stage: BrokerMill) -> None:
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1
    hired = stage.hire()
    run_id = await stage.mill.start(a_step("t"))
    await stage.until(run_id, TaskState.RUNNING)
    await stage.mill.clock.sleep(20)

    stage.broker.copies = lambda _topic, _kind: 1
    await stage.mill.ended(run_id, 10)
    await stage.mill.clock.sleep(3)

    stale = [tuple(one) for answer in stage.broker.on("answers") for one in answer.get("stale", ())]
    assert (run_id, 0, 1) in stale
    assert hired.worker._session is not None
    assert hired.worker._session._hand.tokens == ()
    assert stage.ran == [("w", "t")]
    assert await stage.spent(run_id) == (0, 0)


@on_a_broker_mill
async def test_an_answer_to_an_earlier_copy_of_a_command_begins_nothing(stage: BrokerMill) -> None:
    stage.hire()
    run_id = await stage.mill.start(a_step("t"))
    await stage.mill.ended(run_id, 10)
    stage.broker.copies = lambda _, kind: 0 if kind == "task.started" else 1

    for topic, message in list(stage.broker.sent):
        if topic.startswith("tasks") or b'"bound"' in message.value:
            await stage.broker.send(topic, [message])
            await stage.mill.clock.sleep(1)

    assert stage.ran == [("w", "t")]


@on_a_broker_mill
async def test_who_hands_back_a_command_does_not_stop_the_one_that_runs_it(
    stage: BrokerMill,
) -> None:
    stage.broker.to_everyone = True
    first = stage.hire("first")
    run_id = await one_running(stage, first)
    stage.broker.copies = lambda topic, _: 0 if topic == "answers" else 1
    second = stage.hire("second")
    await stage.mill.clock.sleep(3)
    session = second.worker._session
    assert session is not None
    session.is_welcome = True  # all answers are lost, that one as well
    session._taker.open()
    await stage.mill.clock.sleep(1)

    second.spawn(second.worker.drain(0))
    await stage.mill.clock.sleep(3)
    handed_back = [report for report in stage.broker.on("reports") if report.get("unbound")]
    task = await stage.mill.task(run_id)

    assert [report["run_id"] for report in handed_back] == [run_id]
    assert (task.state, task.epoch) == (TaskState.RUNNING, 1)


@on_a_broker_mill
async def test_a_worker_that_was_paused_for_long_is_told_to_stop(stage: BrokerMill) -> None:
    hired = stage.hire("paused")
    run_id = await one_running(stage, hired)
    stage.hire("other")

    hired.pause()
    session = hired.session
    stage.broker.loses = lambda message: hired.paused and message.key == session
    await stage.begun(2, RECOVERY_SECONDS)
    hired.resume()
    await stage.mill.clock.sleep(8)
    still_running = hired.worker.attempts
    stage.gate.set()
    await stage.mill.ended(run_id, 5)

    assert still_running == ()
    assert await stage.mill.result(run_id, 0) == {"by": "other"}


@on_a_broker_mill
async def test_a_worker_whose_session_was_closed_begins_a_new_one(stage: BrokerMill) -> None:
    hired = stage.hire()
    run_id = await one_running(stage, hired)
    before = hired.session

    async with stage.mill.store.transaction() as tx:
        await tx.sessions.close([SessionId(before)])
    await stage.begun(2)
    stage.gate.set()
    await stage.mill.ended(run_id, 5)

    assert hired.session != before
    assert await stage.spent(run_id) == (0, 1)


@on_a_broker_mill
async def test_outcomes_are_repeated_until_they_are_acknowledged(stage: BrokerMill) -> None:
    stage.broker.copies = lambda _, kind: 0 if kind == "task.completed" else 1
    stage.hire()
    run_id = await stage.mill.start(a_step("t"))
    await stage.begun(1)
    await stage.mill.clock.sleep(30)

    stage.broker.copies = lambda _topic, _kind: 1
    await stage.mill.ended(run_id, 5)
    await stage.mill.clock.sleep(1)
    said = len(stage.broker.on("reports"))
    await stage.mill.clock.sleep(10)

    assert len(stage.ran) == 1
    assert len(stage.broker.on("reports")) == said


@pytest.mark.parametrize("topic", NAMES)
def test_what_cannot_be_read_is_set_aside_and_the_rest_goes_on(topic: str) -> None:
    async def run(stage: BrokerMill) -> None:
        hired = stage.hire()
        await stage.mill.clock.sleep(2)
        for value in (b"\xff\x00", b"{}", b'{"specversion":"1.0"}'):
            await stage.broker.send(topic, [Message(value=value, key=hired.session)])

        run_id = await stage.mill.start(*a_chain(2))
        await stage.mill.ended(run_id, 10)

        dead = stage.broker.dead()
        assert [message.value for message in dead][:1] == [b"\xff\x00"]
        assert {message.headers["source"] for message in dead} == {topic}
        assert all(message.headers["reason"] for message in dead)

    on_a_broker_mill(run)()


@on_a_broker_mill
async def test_a_report_for_another_namespace_is_set_aside(stage: BrokerMill) -> None:
    hired = stage.hire()
    run_id = await one_running(stage, hired)

    (started,) = [
        m for topic, m in stage.broker.sent if topic == "reports" and b"started" in m.value
    ]
    forged = started.value.replace(b'"default"', b'"other"').replace(b"started", b"completed")
    await stage.broker.send("reports", [Message(value=forged)])
    await stage.mill.clock.sleep(2)

    assert [message.value for message in stage.broker.dead()] == [forged]
    assert await stage.mill.states(run_id) == ["RUNNING"]


@on_a_broker_mill
async def test_a_command_of_another_namespace_is_set_aside(stage: BrokerMill) -> None:
    stage.hire()
    run_id = await stage.mill.start(a_step("t"))
    await stage.mill.ended(run_id, 10)

    (command,) = [m for topic, m in stage.broker.sent if topic == "tasks.default.default"]
    forged = command.value.replace(b'"namespace":"default"', b'"namespace":"other"')
    await stage.broker.send("tasks.default.default", [Message(value=forged)])
    await stage.mill.clock.sleep(2)

    assert [message.value for message in stage.broker.dead()] == [forged]
    assert stage.ran == [("w", "t")]


@on_a_broker_mill
async def test_a_suspect_runs_alone_once_what_runs_has_finished(stage: BrokerMill) -> None:
    stage.gate.clear()
    run_id = await stage.mill.start(a_step("suspect", retry=RetryPolicy(max_losses=9)))
    for number in range(3):
        victim = stage.hire(f"victim{number}")
        await stage.begun(number + 1)
        victim.kill()
    others = [await stage.mill.start(a_step("other")) for _ in range(2)]
    stage.hire("worker", slots=8)
    await stage.begun(4)
    others += [await stage.mill.start(a_step("other")) for _ in range(2)]
    await stage.mill.clock.sleep(20)
    stage.gate.set()
    ended = [await stage.mill.ended(one, 60) for one in (run_id, *others)]

    assert [run.state for run in ended] == [RunState.SUCCEEDED] * 5
    assert {"suspect", "other"} not in stage.together
    assert await stage.spent(run_id) == (0, 3)
