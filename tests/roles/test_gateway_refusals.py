"""Bad workers over a real channel: refused by name, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import msgspec
import pytest

from tests.roles.gateway_stage import Mill, Stranger, a_mill, a_stranger
from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.identifiers import RunId, Token
from tidemill.domain.run import RunState
from tidemill.domain.task_run import Reason, TaskError, TaskState
from tidemill.domain.workflow import RetryPolicy, TaskSpec
from tidemill.protocol.codec import MESSAGE_BYTES_MAX
from tidemill.protocol.messages import (
    Acks,
    Holdings,
    Logs,
    LogText,
    Outcome,
    Ping,
    Progress,
    ProgressReport,
    Refused,
    Welcome,
)
from tidemill.scheduler.config import SchedulerConfig
from tidemill.stores.postgres.store import PostgresStore

STEP = TaskSpec(id="step", executor="do", retry=RetryPolicy(max_retries=3, base_seconds=0))


@pytest.fixture
async def mill() -> AsyncIterator[Mill]:
    config = SchedulerConfig(executors_allowed=("do", "shell"), result_bytes_max=1_000)
    async with a_mill(config) as mill:
        yield mill


async def still_works(mill: Mill) -> bool:
    """Whether an honest worker gets a task and can finish it."""
    async with a_stranger(mill) as honest:
        await honest.hear(Welcome)
        run_id = await mill.start(STEP)
        token = await honest.token()
        await honest.report(token, Succeeded(token.epoch, b"1"))
        return (await mill.ended(run_id)).state is RunState.SUCCEEDED


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        ({"protocol": 9}, "protocol 9 is not spoken here, only 1"),
        ({"executors": ("do", "fortran")}, "executor 'fortran' is not known here, only do, shell"),
        ({"executors": ("rm -rf",)}, "executor 'rm -rf' is malformed"),
        ({"executors": ("x" * 200,)}, f"executor '{'x' * 40}…' is malformed"),
        ({"executors": ("do",) * 300}, "may offer 256 executors, not 300"),
        ({"queues": ()}, "at least one queue"),
        ({"queues": ("a",) * 65}, "may serve 64 queues, not 65"),
        ({"queues": ("fast?gpu=1",)}, "queue 'fast?gpu=1' is malformed"),
        ({"queues": ("q" * 129,)}, "is malformed: use 1 to 128"),
        ({"labels": {f"l{n}": "" for n in range(65)}}, "may have 64 labels, not 65"),
        ({"labels": {"zone": "a&b"}}, "label 'zone=a&b' is malformed"),
        ({"labels": {"z" * 64: "eu"}}, "is malformed: use up to 63"),
        ({"worker": ""}, "worker ''"),
        ({"worker": "w" * 129}, "1 to 128 printable characters"),
        ({"worker": "a\0b"}, "'a\\x00b'"),
        ({"namespace": ""}, "namespace ''"),
        ({"slots": 10_001}, "slots must be from 0 to 10000"),
        ({"session": "\0", "secret": "s"}, "session and secret"),
    ],
)
async def test_a_hello_that_breaks_a_rule_is_refused_by_name(
    mill: Mill, hello: dict[str, Any], reason: str
) -> None:
    async with a_stranger(mill, **hello) as stranger:
        refused = await stranger.hear(Refused)

        assert reason in refused.reason
        assert (await stranger.end())[0] is grpc.StatusCode.OK
    assert await still_works(mill)


async def test_whoever_says_something_else_first_is_refused(mill: Mill) -> None:
    stranger = Stranger(mill.address)
    await stranger.say(Ping())

    assert (await stranger.hear(Refused)).reason == "the first message must be Hello"
    await stranger.close()


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (b'"' + b"x" * 1_000 + b'"', "ResultTooLarge", "1002 bytes, 1000 is the limit"),
        (b"\xff\xfe", "ResultNotSerializable", "not JSON"),
        (b'"\xff"', "ResultNotSerializable", "not UTF-8"),
        (b'"\\ud800"', "ResultNotSerializable", "not JSON"),
        (b"NaN", "ResultNotSerializable", "not JSON"),
        (b"[1, Infinity]", "ResultNotSerializable", "not JSON"),
        (b"1e999", "ResultNotSerializable", "not JSON"),
        (b"", "ResultNotSerializable", "not JSON"),
        (b"{} {}", "ResultNotSerializable", "not JSON"),
        (b"[" * 65 + b"]" * 65, "ResultNotSerializable", "more than 64 deep"),
    ],
)
async def test_a_bad_result_fails_its_task_for_good_and_no_other(
    mill: Mill, result: bytes, kind: str, message: str
) -> None:
    run_id = await mill.start(STEP, msgspec.structs.replace(STEP, id="other"))
    async with a_stranger(mill) as stranger:
        first, second = await stranger.tokens(2)
        await stranger.report(first, Succeeded(first.epoch, result))
        await stranger.report(second, Succeeded(second.epoch, b"2"))
        await mill.ended(run_id)

    failed, other = (
        await mill.task(run_id, first.position),
        await mill.task(run_id, second.position),
    )
    assert (failed.state, failed.reason, failed.failures) == ("FAILED", Reason.FINAL_ERROR, 1)
    assert failed.error is not None
    assert (failed.error.type, message in failed.error.message) == (kind, True)
    assert other.state is TaskState.SUCCEEDED


async def test_a_result_at_the_limits_is_kept(mill: Mill) -> None:
    deep = b"[" * 64 + b"]" * 64
    run_id = await mill.start(STEP, msgspec.structs.replace(STEP, id="other"))
    async with a_stranger(mill) as stranger:
        first, second = await stranger.tokens(2)
        await stranger.report(first, Succeeded(first.epoch, b'"' + b"x" * 998 + b'"'))
        await stranger.report(second, Succeeded(second.epoch, deep))

        assert (await mill.ended(run_id)).state is RunState.SUCCEEDED
    kept = await mill.store.payloads.results([second.key])
    assert kept == {second.key: deep}


async def test_a_bad_result_that_comes_with_hello_fails_its_task_too(mill: Mill) -> None:
    run_id = await mill.start(STEP)
    async with a_stranger(mill) as stranger:
        welcome = await stranger.hear(Welcome)
        token = await stranger.token()
    outcome = (Outcome(token, Succeeded(token.epoch, b"NaN")),)
    session, secret = welcome.session, welcome.secret
    async with a_stranger(mill, session=session, secret=secret, finished=outcome) as stranger:
        assert (await stranger.hear(Welcome)).acknowledged == (token,)

        assert (await mill.ended(run_id)).state is RunState.FAILED


async def test_an_error_is_cut_to_its_bounds_and_cleaned(mill: Mill) -> None:
    run_id = await mill.start(STEP)
    async with a_stranger(mill) as stranger:
        token = await stranger.token()
        error = TaskError(type="T" * 999, message="a\0b" + "m" * 99_999, traceback="t" * 999_999)
        await stranger.report(token, Failed(epoch=token.epoch, error=error, final=True))
        await mill.ended(run_id)

    kept = (await mill.task(run_id)).error
    assert kept is not None
    assert (len(kept.type), len(kept.message), len(kept.traceback)) == (256, 16_384, 131_072)
    assert kept.message.startswith("a\ufffdb")


async def test_postgresql_stores_whatever_a_stranger_makes_up(postgres_dsn: str) -> None:
    store = PostgresStore(postgres_dsn, schema="refusals")
    nowhere = Token(RunId("\0\ufffd"), 0, 1)
    error = TaskError(type="\0", message="\0", traceback="\0")
    async with a_mill(store=store) as mill:
        run_id = await mill.start(STEP)
        async with a_stranger(mill) as stranger:
            token = await stranger.token()
            await stranger.say(Logs((LogText(token, "a\0b", 2**63), LogText(token, "c", 2**63))))
            await stranger.report(token, Failed(epoch=token.epoch, error=error, final=True))
            await stranger.report(nowhere, Succeeded(1, b"1"))

            assert await stranger.hear(Acks, lambda acks: acks.stale == (nowhere,))
        assert (await mill.ended(run_id)).state is RunState.FAILED
        assert await still_works(mill)


async def test_reports_about_nothing_that_exists_change_nothing(mill: Mill) -> None:
    nowhere = Token(RunId("no-such-run"), 2**31 - 1, 2**31 - 1)
    async with a_stranger(mill) as stranger:
        await stranger.say(Holdings(held=(nowhere,), slots=2**31))
        await stranger.say(Progress((ProgressReport(nowhere, 0.5, "m" * 10_000),)))
        await stranger.say(Logs((LogText(nowhere, "\0", 2**63),)))
        await stranger.report(nowhere, Succeeded(nowhere.epoch, b"1"))

        assert (await stranger.hear(Acks)).stale == (nowhere,)
    assert await still_works(mill)


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (b"\xff\xff\xff", grpc.StatusCode.INVALID_ARGUMENT, "not a message of the protocol"),
        (b"", grpc.StatusCode.INVALID_ARGUMENT, "without content"),
        (b"\xba\x3e\x01x", grpc.StatusCode.INVALID_ARGUMENT, "of a kind this release"),
        (b"\0" * (MESSAGE_BYTES_MAX + 1), grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max"),
    ],
)
async def test_what_is_no_message_ends_its_stream_with_a_status_and_no_other(
    mill: Mill, data: bytes, code: grpc.StatusCode, text: str
) -> None:
    async with a_stranger(mill) as neighbour, a_stranger(mill) as stranger:
        await neighbour.hear(Welcome)
        await stranger.hear(Welcome)
        await stranger.send(data)
        status, details = await stranger.end()

        assert (status, text in details) == (code, True)
        await neighbour.hear(Ping)
    assert await still_works(mill)


async def test_bytes_that_are_not_even_http_disturb_nobody(mill: Mill) -> None:
    host, _, port = mill.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x16\x03\x01" + b"GET / HTTP/1.0\r\n\r\n" * 100)
    await reader.read()
    writer.close()

    assert await still_works(mill)
