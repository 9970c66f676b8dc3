"""The wire format: every message survives the way there and back, nothing malformed passes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.events import CancelConfirmed, Failed, Released, Succeeded, WorkerReport
from tidemill.domain.identifiers import RunId, SessionId, Token
from tidemill.domain.task_run import TaskError
from tidemill.protocol import codec
from tidemill.protocol.generated import worker_pb2 as wire
from tidemill.protocol.messages import (
    Acks,
    Assignment,
    Assignments,
    Cancels,
    Goodbye,
    Hello,
    Holdings,
    Logs,
    LogText,
    Outcome,
    Outcomes,
    Ping,
    Progress,
    ProgressReport,
    Refused,
    SchedulerMessage,
    Welcome,
    WorkerMessage,
)

words = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(0, 2**31 - 1)
seconds = st.none() | st.floats(0, 1e9)
data = st.binary(max_size=40)
tokens = st.builds(Token, words.filter(bool).map(RunId), numbers, numbers)
some_tokens = st.lists(tokens, max_size=3).map(tuple)
errors = st.builds(TaskError, type=words, message=words, traceback=words)


def _reports(epoch: int) -> st.SearchStrategy[WorkerReport]:
    return st.one_of(
        st.builds(Succeeded, st.just(epoch), st.none() | data),
        st.builds(
            Failed,
            epoch=st.just(epoch),
            error=errors,
            final=st.booleans(),
            timeout=st.booleans(),
            retry_after_seconds=seconds,
        ),
        st.just(CancelConfirmed(epoch)),
        st.just(Released(epoch)),
    )


outcomes = tokens.flatmap(lambda token: st.builds(Outcome, st.just(token), _reports(token.epoch)))
some_outcomes = st.lists(outcomes, max_size=3).map(tuple)
some_words = st.lists(words, max_size=3).map(tuple)
hellos = st.builds(
    Hello,
    protocol=numbers,
    worker=words,
    namespace=words,
    slots=numbers,
    queues=some_words,
    labels=st.dictionaries(words, words, max_size=3),
    executors=some_words,
    session=st.none() | words.map(SessionId),
    secret=st.none() | words,
    held=some_tokens,
    finished=some_outcomes,
    joins_acks=st.booleans(),
)
assignments = st.builds(
    Assignment,
    token=tokens,
    attempt=numbers,
    workflow=words,
    task=words,
    executor=words,
    params=data,
    inputs=data,
    run_input=data,
    results=st.dictionaries(words, data, max_size=3),
    attempt_seconds=seconds,
    heartbeat_seconds=seconds,
    secrets=st.dictionaries(words, words, max_size=2),
    secrets_trouble=words,
    task_token=words,
)
reports = st.builds(ProgressReport, tokens, st.floats(0, 1), words)
worker_messages = st.one_of(
    hellos,
    st.builds(Outcomes, some_outcomes),
    st.builds(Holdings, held=some_tokens, slots=numbers),
    st.builds(Progress, st.lists(reports, max_size=3).map(tuple)),
    st.builds(
        Logs,
        st.lists(st.builds(LogText, tokens, words, st.integers(0, 2**40)), max_size=3).map(tuple),
    ),
    st.just(Ping()),
    st.builds(Goodbye, some_tokens),
)
some_acks = st.builds(Acks, some_tokens, some_tokens)
scheduler_messages = st.one_of(
    st.builds(
        Welcome,
        session=words.map(SessionId),
        secret=words,
        keep=some_tokens,
        acknowledged=some_tokens,
    ),
    st.builds(Refused, words),
    st.builds(Assignments, st.lists(assignments, max_size=3).map(tuple), st.none() | some_acks),
    some_acks,
    st.builds(Cancels, some_tokens),
    st.just(Ping()),
)


@given(worker_messages)
def test_what_a_worker_says_arrives_as_it_was_said(message: WorkerMessage) -> None:
    assert codec.decode_worker_message(codec.encode_worker_message(message)) == message


@given(scheduler_messages)
def test_what_a_scheduler_says_arrives_as_it_was_said(message: SchedulerMessage) -> None:
    assert codec.decode_scheduler_message(codec.encode_scheduler_message(message)) == message


@given(st.binary(max_size=200))
def test_noise_is_a_message_or_a_typed_error(noise: bytes) -> None:
    for decode in (codec.decode_worker_message, codec.decode_scheduler_message):
        with suppress(codec.MalformedMessage):
            assert decode(noise) is not None


TOKEN = wire.Token(run_id="r", position=1, epoch=1)
BROKEN = {
    "nothing": wire.WorkerMessage(),
    "no report": wire.WorkerMessage(outcomes=wire.Outcomes(outcomes=[wire.Outcome(token=TOKEN)])),
    "no token": wire.WorkerMessage(
        outcomes=wire.Outcomes(outcomes=[wire.Outcome(released=wire.Released())])
    ),
    "progress beyond all": wire.WorkerMessage(
        progress=wire.Progress(reports=[wire.ProgressReport(token=TOKEN, fraction=1.5)])
    ),
    "progress of no number": wire.WorkerMessage(
        progress=wire.Progress(reports=[wire.ProgressReport(token=TOKEN, fraction=float("nan"))])
    ),
    "negative patience": wire.WorkerMessage(
        outcomes=wire.Outcomes(
            outcomes=[wire.Outcome(token=TOKEN, failed=wire.Failed(retry_after_seconds=-1))]
        )
    ),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_malformed_message_has_a_typed_error(broken: wire.WorkerMessage) -> None:
    with pytest.raises(codec.MalformedMessage):
        codec.decode_worker_message(broken.SerializeToString())


def test_a_message_beyond_the_limit_is_not_sent() -> None:
    huge = Logs((LogText(Token(RunId("r"), 0, 1), "x" * codec.MESSAGE_BYTES_MAX),))

    with pytest.raises(codec.MalformedMessage, match="is the limit"):
        codec.encode_worker_message(huge)
