"""Load tests against a server that answers as told: what they count, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec
import pytest

from bench.load.loads import CHAINS, JOBS, MIXED, Load
from bench.load.running import CannotBegin, Effort, probe, run_load
from bench.load.showing import progress_line, summary
from bench.load.submitting import Submitter
from bench.load.tally import Tally
from bench.load.watching import Watcher
from bench.load.wire import BadUrl, Target
from tests.servers.listening import listening
from tests.servers.process import free_port

HANG_UP = ""
TOO_EARLY = "503 Unavailable\r\nRetry-After: 0"
FEW = replace(JOBS, count=7)
ONE_BY_ONE = Effort(connections=2, bulk=False, timeout=10.0)
IN_BULK = Effort(connections=2, bulk=True, timeout=10.0)


def _id(number: int) -> str:
    return f"01980000-0000-7000-8000-{number:012d}"


@dataclass
class Scripted:
    """A server that takes everything, unless a test says otherwise."""

    posts: int = 0
    taken: int = 0
    open_pages: list[list[str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    refuse: Callable[[int], str | None] = lambda _: None  # by the number of the POST
    problems: dict[int, int] = field(default_factory=dict)  # status of a line, once

    def answer(self, method: str, path: str, body: bytes) -> tuple[str, bytes]:
        if method == "POST":
            return self._post(path, body)
        if path == "/metrics":
            return "200 OK", b"jobs_success_total %d.0\n" % self.taken
        if "state=FAILED" in path:
            return "200 OK", _page(self.failed, None)
        ids = self.open_pages.pop(0) if self.open_pages else []
        return "200 OK", _page(ids, "further" if self.open_pages else None)

    def _post(self, path: str, body: bytes) -> tuple[str, bytes]:
        self.posts += 1
        refused = self.refuse(self.posts)
        if refused is not None:
            return refused, b'{"detail": "not now"}'
        lines = body.split(b"\n") if path.endswith(":bulk") else [body]
        return "200 OK", b"\n".join(self._item(index) for index in range(len(lines)))

    def _item(self, index: int) -> bytes:
        if status := self.problems.pop(index, 0):
            problem = {"status": status, "detail": "not this one"}
            return msgspec.json.encode({"index": index, "problem": problem})
        self.taken += 1
        return msgspec.json.encode({"index": index, "id": _id(self.taken)})


def _page(ids: list[str], following: str | None) -> bytes:
    return msgspec.json.encode({"items": [{"id": one} for one in ids], "next": following})


@asynccontextmanager
async def _served(script: Scripted) -> AsyncIterator[Target]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            method, path, _ = head.split(" ", 2)
            length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
            body = await reader.readexactly(int(length or 0))
            status, text = script.answer(method, path, body)
            if status == HANG_UP:
                return
            answer = f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n"
            writer.write(answer.encode() + text)

    async with listening(serve) as port:
        yield Target.of(f"http://127.0.0.1:{port}")


async def _run(script: Scripted, load: Load, effort: Effort) -> Tally:
    async with _served(script) as target:
        return await run_load(target, load, effort, lambda _: None)


def test_half_a_million_jobs_should_leave_12500_dead_letters() -> None:
    expected = MIXED.dead_letters(MIXED.count)

    assert expected.expected == 12_500
    assert 418 < expected.tolerance < 419
    assert expected.fit(12_082)
    assert not expected.fit(12_081)


def test_every_fifth_job_is_flaky() -> None:
    kinds = [b"flaky" in MIXED.body(number) for number in range(1_000)]

    assert sum(kinds) == 200


@pytest.mark.parametrize("effort", [ONE_BY_ONE, IN_BULK])
async def test_every_item_is_submitted_and_seen_to_its_end(effort: Effort) -> None:
    tally = await _run(Scripted(), FEW, effort)

    assert (tally.submitted, tally.finished, tally.failed) == (7, 7, 0)
    assert tally.complaints() == []
    assert len(tally.latency_ms(50, 99)) == 2


async def test_a_server_that_asks_to_wait_is_obeyed_and_counted() -> None:
    script = Scripted(refuse=lambda number: TOO_EARLY if number in {1, 2} else None)

    tally = await _run(script, FEW, ONE_BY_ONE)

    assert (tally.submitted, tally.held_back, tally.errors) == (7, 2, 0)


async def test_lines_of_a_bulk_request_stand_for_themselves() -> None:
    script = Scripted(problems={1: 400})

    tally = await _run(script, FEW, IN_BULK)

    assert (tally.submitted, tally.errors, tally.first_error) == (6, 1, "not this one")
    assert tally.complaints() == ["1 jobs were not taken: not this one"]


async def test_a_line_that_was_asked_to_wait_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.load.submitting.WAIT_SECONDS", 0.0)

    tally = await _run(Scripted(problems={2: 503}), FEW, IN_BULK)

    assert (tally.submitted, tally.held_back, tally.errors) == (7, 1, 0)


async def test_a_lost_answer_is_an_error_and_the_rest_goes_on() -> None:
    script = Scripted(refuse=lambda number: HANG_UP if number == 3 else None)

    tally = await _run(script, FEW, ONE_BY_ONE)

    assert (tally.submitted, tally.errors) == (6, 1)


async def test_a_server_that_refuses_everything_is_given_up() -> None:
    script = Scripted(refuse=lambda _: "400 Bad Request")

    tally = await _run(script, FEW, ONE_BY_ONE)

    assert tally.end == "given up"
    assert tally.first_error == "status 400: not now"


async def test_runs_of_others_neither_keep_a_load_open_nor_count() -> None:
    others = ["01980000-0000-7000-8000-ffffffffffff"]
    script = Scripted(open_pages=[[_id(1)], others, others], failed=[*others, _id(2)])

    tally = await _run(script, FEW, ONE_BY_ONE)

    assert (tally.end, tally.finished, tally.failed) == ("done", 7, 1)
    assert tally.complaints() == ["1 dead letters are not what chance explains"]


async def test_pages_without_a_run_of_ours_are_not_read_twice() -> None:
    script = Scripted(open_pages=[["foreign"], [_id(1)]])
    async with _served(script) as target:
        tally = Tally(FEW)
        await Submitter(target, tally, bulk=True).run(1)
        watcher = Watcher(target, tally)

        await watcher.until_ended()

        assert watcher.place == "further"
        watcher.close()


async def test_a_load_that_takes_too_long_ends_with_what_there_is() -> None:
    script = Scripted(open_pages=[[_id(1)]] * 100_000)

    tally = await _run(script, FEW, replace(ONE_BY_ONE, timeout=3.0))

    assert (tally.end, tally.submitted, tally.exact) == ("timed out", 7, False)


async def test_an_interrupted_load_still_has_a_summary() -> None:
    script = Scripted(open_pages=[[_id(1)]] * 10_000)
    submitted = asyncio.Event()
    async with _served(script) as target:
        running = asyncio.create_task(run_load(target, FEW, ONE_BY_ONE, lambda _: submitted.set()))
        await submitted.wait()
        running.cancel()

        tally = await running

    assert tally.end == "interrupted"
    assert summary(tally).row_count == 12
    assert "submitted 7 of 7" in progress_line(tally)


async def test_no_server_is_told_with_the_fix_and_without_the_key() -> None:
    target = Target.of(f"http://127.0.0.1:{free_port()}", {"Authorization": "Bearer hush"})

    with pytest.raises(CannotBegin, match=r"connection refused.*make up") as caught:
        await probe(target)

    assert "hush" not in f"{caught.value}{target!r}"


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://here", "http://", "http://a:b:c"])
def test_an_address_that_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(BadUrl, match="is no server"):
        Target.of(url)


def test_a_workflow_counts_as_its_three_steps() -> None:
    tally = Tally(CHAINS, began=0.0)
    tally.ended, tally.finished = 10.0, 50_000

    assert tally.tasks_per_second == 15_000
