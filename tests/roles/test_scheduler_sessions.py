"""Sessions, leases, fencing: workers that die, come back, leave, fall silent or lie."""

from __future__ import annotations

import asyncio

from tests.roles.mill import Mill, a_chain, a_step, on_a_mill
from tidemill.domain.events import Released, Succeeded
from tidemill.domain.identifiers import TaskKey, Token
from tidemill.domain.task_run import ALONE, Reason
from tidemill.domain.workflow import RetryPolicy
from tidemill.protocol.messages import (
    Acks,
    Assignments,
    Cancels,
    Holdings,
    Logs,
    LogText,
    Outcome,
    Outcomes,
    Progress,
    ProgressReport,
)

RECOVERY_SECONDS_MAX = 10


@on_a_mill
async def test_a_killed_worker_s_task_runs_elsewhere_within_ten_seconds(mill: Mill) -> None:
    first, second = mill.worker(slots=1), mill.worker()
    await first.open()
    run_id = await mill.start(a_step("a"))
    token = (await first.assignment()).token
    await second.open()

    first.hang_up()
    again = await second.assignment(RECOVERY_SECONDS_MAX)

    assert (again.token.epoch, again.attempt) == (token.epoch + 1, 2)
    await second.succeed(again.token)
    await mill.ended(run_id)
    assert (await mill.task(run_id)).losses == 1


@on_a_mill
async def test_a_silent_worker_s_task_runs_elsewhere_within_ten_seconds(mill: Mill) -> None:
    first, second = mill.worker(slots=1), mill.worker()
    await first.open()
    await mill.start(a_step("a"))
    await first.assignment()
    await second.open()

    first.fall_silent()

    assert (await second.assignment(RECOVERY_SECONDS_MAX)).task == "a"
    assert first.over.is_set()


@on_a_mill
async def test_a_zombie_s_report_changes_nothing_and_is_called_stale(mill: Mill) -> None:
    zombie, other = mill.worker(slots=1), mill.worker()
    welcome = await zombie.open()
    run_id = await mill.start(a_step("a"))
    stale = (await zombie.assignment()).token
    await other.open()
    zombie.hang_up()
    fresh = (await other.assignment()).token

    back = mill.worker(session=welcome.session, secret=welcome.secret, held=(stale,))
    assert (await back.open()).keep == ()
    acks = await back.succeed(stale, result="from the dead")

    assert acks.stale == (stale,)
    await other.succeed(fresh, result="alive")
    await mill.ended(run_id)
    assert await mill.result(run_id, 0) == "alive"


@on_a_mill
async def test_a_doubled_report_is_applied_once(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"), a_step("b"), a_step("c", "a", "b"))
    token = next(one.token for one in await worker.assignments(2) if one.task == "a")

    await worker.report((token, Succeeded(token.epoch)), (token, Succeeded(token.epoch)))
    await worker.succeed(token)

    assert (await mill.task(run_id, 2)).waiting == 1


@on_a_mill
async def test_a_worker_that_comes_back_keeps_what_it_runs_and_loses_nothing(mill: Mill) -> None:
    before = mill.worker()
    welcome = await before.open()
    run_id = await mill.start(a_step("a"), a_step("b"), a_step("c"))
    tokens = {one.task: one.token for one in await before.assignments(3)}
    before.hang_up()

    after = mill.worker(
        session=welcome.session,
        secret=welcome.secret,
        held=(tokens["a"],),
        finished=(Outcome(tokens["b"], Succeeded(1, b"1")),),
    )
    answer = await after.open()

    assert answer.keep == (tokens["a"],)
    assert answer.acknowledged == (tokens["b"],)
    released = await after.assignment()
    assert await mill.states(run_id) == ["RUNNING", "SUCCEEDED", "RUNNING"]
    assert (released.task, released.token.epoch, released.attempt) == ("c", 2, 1)
    await after.succeed(tokens["a"], released.token)
    assert (await mill.ended(run_id)).state == "SUCCEEDED"
    assert (await mill.task(run_id, 0)).losses == 0


@on_a_mill
async def test_a_worker_may_come_back_to_another_scheduler(mill: Mill) -> None:
    second = mill.a_scheduler("second")
    duties = asyncio.create_task(second.run())
    before = mill.worker()
    welcome = await before.open()
    run_id = await mill.start(a_step("a"))
    token = (await before.assignment()).token

    after = mill.worker(second, session=welcome.session, secret=welcome.secret, held=(token,))
    assert (await after.open()).keep == (token,)
    await before.over.wait()
    await mill.clock.sleep(20)
    await after.succeed(token)

    assert (await mill.ended(run_id)).state == "SUCCEEDED"
    assert (await mill.task(run_id)).epoch == 1
    duties.cancel()


@on_a_mill
async def test_a_wrong_secret_adopts_nothing(mill: Mill) -> None:
    before = mill.worker()
    welcome = await before.open()
    await mill.start(a_step("a"))
    token = (await before.assignment()).token

    thief = mill.worker(session=welcome.session, secret="guess", held=(token,))

    assert (await thief.open()).keep == ()
    await before.succeed(token)


@on_a_mill
async def test_a_goodbye_hands_everything_back_unspent(mill: Mill) -> None:
    first, second = mill.worker(), mill.worker()
    await first.open()
    run_id = await mill.start(*a_chain(1))
    await first.assignment()
    await second.open()

    first.leave()
    again = await second.assignment(1)

    task = await mill.task(run_id)
    assert (again.attempt, task.failures, task.losses) == (1, 0, 0)
    (attempt,) = await mill.store.reader.attempts("default", TaskKey(run_id, 0))
    assert attempt.reason == Reason.RELEASED


@on_a_mill
async def test_a_task_that_is_handed_back_is_granted_again_unspent(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    await mill.start(a_step("a"))
    token = (await worker.assignment()).token

    await worker.report((token, Released(token.epoch)))

    assert (await worker.assignment()).attempt == 1


@on_a_mill
async def test_a_grant_that_never_reached_its_worker_is_released_unspent(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    await worker.assignment()

    async def say_that_nothing_is_held() -> None:
        while True:
            worker.send(Holdings(held=(), slots=10))
            await mill.clock.sleep(2)

    liar = asyncio.create_task(say_that_nothing_is_held())
    again = await worker.assignment(15)
    liar.cancel()

    assert again.token.epoch == 2
    assert (await mill.task(run_id)).losses == 0


@on_a_mill
async def test_what_a_worker_holds_without_a_grant_it_is_told_to_stop(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token
    session = mill.scheduler.desk.sessions.all()[0]
    stray = Token(run_id, 0, 7)
    session.grant(stray, 0.0)

    worker.send(Holdings(held=(token, stray), slots=10))

    assert (await worker.receive(Cancels)).tokens == (stray,)


@on_a_mill
async def test_a_suspect_runs_alone_and_its_neighbours_are_spared(mill: Mill) -> None:
    policy = RetryPolicy(max_losses=2)
    killer = a_step("killer", retry=policy)
    neighbours = [a_step(f"n{n}", retry=policy) for n in range(3)]
    run_id = await mill.start(killer, *neighbours)

    for _ in range(6):  # twice all together, then each of the four alone
        worker = mill.worker()
        await worker.open()
        together = (await worker.receive(Assignments, 60)).assignments
        if any(one.task == "killer" for one in together):
            worker.hang_up()  # it takes the worker down, and whoever is with it
        else:
            await worker.succeed(*(one.token for one in together))
            worker.leave()
        await mill.clock.sleep(0.5)
    await mill.ended(run_id)

    assert await mill.states(run_id) == ["FAILED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
    assert (await mill.task(run_id)).reason == Reason.LOST


@on_a_mill
async def test_a_busy_worker_is_reserved_for_a_suspect(mill: Mill) -> None:
    worker = mill.worker(slots=2)
    await worker.open()
    run_id = await mill.start(a_step("suspect", retry=RetryPolicy(max_losses=1)))
    await worker.assignment()
    worker.hang_up()
    second = mill.worker(slots=2)
    await mill.clock.sleep(10)
    assert (await mill.task(run_id)).hold == ALONE
    busy = await mill.start(a_step("long"))
    await second.open()

    first = (await second.assignment()).token
    assert first.run_id in {run_id, busy}
    other = await mill.start(a_step("later"))
    assert await second.nothing_comes(5)
    await second.succeed(first)

    tasks = {one.token.run_id for one in await second.assignments(1)}
    assert tasks <= {run_id, busy, other}


@on_a_mill
async def test_higher_priorities_go_first_and_equals_in_order_of_arrival(mill: Mill) -> None:
    low = await mill.start(a_step("low", priority=-1))
    first = await mill.start(a_step("first"))
    second = await mill.start(a_step("second"))
    high = await mill.start(a_step("high", priority=5))
    worker = mill.worker(slots=1)
    await worker.open()

    order = []
    for _ in range(4):
        assignment = await worker.assignment()
        order.append(assignment.token.run_id)
        await worker.succeed(assignment.token)

    assert order == [high, first, second, low]


@on_a_mill
async def test_tasks_go_only_where_queue_and_labels_match(mill: Mill) -> None:
    plain = mill.worker()
    gpu = mill.worker(labels={"gpu": "a100", "zone": "eu"})
    mail = mill.worker(queues=("mail",))
    for worker in (plain, gpu, mail):
        await worker.open()
    await mill.start(
        a_step("g", labels={"gpu": "a100"}), a_step("m", queue="mail"), a_step("x", queue="nobody")
    )

    assert (await gpu.assignment()).task == "g"
    assert (await mail.assignment()).task == "m"
    assert await plain.nothing_comes(5)


@on_a_mill
async def test_a_worker_that_speaks_another_protocol_is_refused_by_name(mill: Mill) -> None:
    assert await mill.worker(protocol=9).refused() == "protocol 9 is not spoken here, only 1"
    assert await mill.worker(slots=-1).refused() == "slots must be from 0 to 10000, not -1"
    assert await mill.worker(queues=()).refused() == "a worker must serve at least one queue"


@on_a_mill
async def test_output_of_an_attempt_is_kept_also_when_its_worker_dies(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token

    worker.send(Logs((LogText(token, "one\n"), LogText(token, "two\n"))))
    worker.hang_up()
    await mill.clock.sleep(1)

    assert await mill.store.reader.logs("default", TaskKey(run_id, 0)) == {1: "one\ntwo\n"}


@on_a_mill
async def test_progress_is_known_while_the_attempt_runs(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    run_id = await mill.start(a_step("a"))
    token = (await worker.assignment()).token

    worker.send(Progress((ProgressReport(token, 0.5, "half"),)))
    await mill.clock.sleep(0.1)
    known = mill.scheduler.progress()
    await worker.succeed(token)

    assert known[TaskKey(run_id, 0)].fraction == 0.5
    assert mill.scheduler.progress() == {}


@on_a_mill
async def test_two_schedulers_share_the_work_of_one_run(mill: Mill) -> None:
    second = mill.a_scheduler("second")
    duties = asyncio.create_task(second.run())
    one, two = mill.worker(slots=5), mill.worker(second, slots=5)
    await one.open()
    await two.open()
    parents = [a_step(f"p{n}") for n in range(10)]
    run_id = await mill.start(*parents, a_step("last", *(task.id for task in parents)))

    ours, theirs = await one.assignments(5), await two.assignments(5)
    await asyncio.gather(
        one.succeed(*(a.token for a in ours)), two.succeed(*(a.token for a in theirs))
    )
    await mill.clock.sleep(3)

    task = await mill.task(run_id, 10)
    assert (task.state, task.waiting, task.epoch) == ("RUNNING", 0, 1)
    duties.cancel()


@on_a_mill
async def test_reports_of_a_run_nobody_knows_are_acknowledged_as_stale(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    token = Token(mill.entropy.run_id(), 3, 1)

    worker.send(Outcomes((Outcome(token, Succeeded(1)),)))

    assert (await worker.receive(Acks)).stale == (token,)


@on_a_mill
async def test_what_a_turn_acknowledges_and_grants_is_one_message_for_who_joins_acks(
    mill: Mill,
) -> None:
    worker = mill.worker(joins_acks=True)
    await worker.open()
    await mill.start(*a_chain(2))
    token = (await worker.assignment()).token

    worker.send(Outcomes((Outcome(token, Succeeded(token.epoch)),)))
    message = await worker.receive(Assignments)

    assert [one.task for one in message.assignments] == ["t1"]
    assert message.acks == Acks((token,))


@on_a_mill
async def test_a_worker_that_does_not_join_acks_gets_them_alone(mill: Mill) -> None:
    worker = mill.worker()
    await worker.open()
    await mill.start(*a_chain(2))
    token = (await worker.assignment()).token

    acks = await worker.succeed(token)
    message = await worker.receive(Assignments)

    assert (acks.tokens, message.acks) == ((token,), None)
