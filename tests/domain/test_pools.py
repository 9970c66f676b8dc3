"""Grants that a pool holds until one of its workers takes them up."""

from __future__ import annotations

import re

from tests.builders import NOON, a_task
from tests.domain.legal_moves import ERROR, POOL, SESSION
from tests.domain.plans import a_node
from tests.domain.task_moves import LATER, after, moved, tried
from tidemill.domain.events import Bound, Due, Failed, Granted, Lost, StopRequested
from tidemill.domain.identifiers import SECOND, SessionId
from tidemill.domain.pools import is_behind_broker, is_pool, pool_key
from tidemill.domain.task_run import Reason, TaskRun, TaskState
from tidemill.domain.workflow import Timeouts

OTHER = SessionId("session-1")
TIMED = a_node(timeouts=Timeouts(attempt_seconds=3))


def unbound(**fields: object) -> TaskRun:
    return a_task(state=TaskState.RUNNING, session_id=POOL, **fields)


def test_a_pool_has_a_limited_time_to_begin_and_the_attempt_has_not_begun() -> None:
    task = after(a_task(), Granted(POOL, 15.0), TIMED)

    assert (task.session_id, task.due_at) == (POOL, LATER + 15 * SECOND)


def test_the_attempt_begins_when_a_worker_takes_it_up() -> None:
    task = after(unbound(started_at=NOON), Bound(1, POOL, SESSION), TIMED)

    assert (task.session_id, task.started_at) == (SESSION, LATER)
    assert task.due_at == LATER + 4 * SECOND


def test_the_first_worker_that_takes_it_up_gets_it() -> None:
    task = after(unbound(), Bound(1, POOL, SESSION))

    assert tried(task, Bound(1, POOL, OTHER)) is None
    assert after(task, Bound(1, POOL, SESSION)) == task


def test_a_worker_of_another_pool_does_not_get_it() -> None:
    assert tried(unbound(), Bound(1, SessionId("pool-1"), SESSION)) is None


def test_what_was_asked_to_stop_is_not_taken_up() -> None:
    task = a_task(state=TaskState.CANCELLING)

    assert tried(task, Bound(1, POOL, SESSION)) is None


def test_what_nobody_takes_up_in_time_goes_back_unspent() -> None:
    move = moved(unbound(due_at=NOON), Due(1, TaskState.RUNNING), TIMED)

    assert (move.task.state, move.task.failures, move.task.losses) == (TaskState.READY, 0, 0)
    assert move.attempt is not None
    assert move.attempt.reason is Reason.RELEASED


def test_a_pool_that_is_lost_spends_nothing() -> None:
    task = after(unbound(), Lost(1, POOL))

    assert (task.state, task.losses) == (TaskState.READY, 0)


def test_what_nobody_has_begun_is_cancelled_at_once() -> None:
    assert after(unbound(), StopRequested()).state is TaskState.CANCELLED


def test_a_grant_that_cannot_be_sent_fails_without_a_worker() -> None:
    task = after(unbound(), Failed(epoch=1, error=ERROR, final=True))

    assert task.state is TaskState.FAILED


def test_the_order_in_which_a_worker_names_queues_and_labels_does_not_matter() -> None:
    one = pool_key("default", ["b", "a", "b"], {"zone": "eu", "gpu": "a100"})
    other = pool_key("default", ("a", "b"), {"gpu": "a100", "zone": "eu"})

    assert (one.id, one.topic) == (other.id, other.topic)
    assert is_pool(one.id)
    assert not is_pool(None)


def test_the_topic_of_one_queue_is_named_after_it() -> None:
    assert pool_key("default", ["orders"], {}).topic == "tasks.default.orders"


def test_pools_never_share_a_topic_and_a_broker_can_take_its_name() -> None:
    keys = [
        pool_key("a", ["b.c"], {}),
        pool_key("a.b", ["c"], {}),
        pool_key("a", ["b"], {"c": ""}),
        pool_key("a", ["b", "c"], {}),
        pool_key("a", ["b_c"], {}),
        pool_key("a", ["b"], {"x/y": "z"}),
        pool_key("a", ["b"], {"x": "y-z"}),
        pool_key("a", ["b"], {"x-y": "z"}),
        pool_key("a" * 128, ["b" * 128], {}),
        pool_key("a" * 128, ["b" * 127], {}),
    ]

    topics = {key.topic for key in keys}

    assert len(topics) == len({key.id for key in keys}) == len(keys)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,160}", topic) for topic in topics)


def test_sessions_behind_a_broker_are_known_by_their_name() -> None:
    assert is_behind_broker(SessionId("broker-1"))
    assert not is_behind_broker(SessionId("1"))
