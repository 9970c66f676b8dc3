"""What user code sees and says: the context, printed text, log lines."""

from __future__ import annotations

import io
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from tests.roles.worker_stage import a_token
from tidemill.protocol.messages import Logs
from tidemill.sdk.context import NoContext, TaskCancelled, context, fake_context
from tidemill.worker.capture import RoutedStream
from tidemill.worker.output import Output


def test_outside_a_task_the_context_says_what_to_do() -> None:
    with pytest.raises(NoContext, match="fake_context"):
        context()


def test_a_fake_context_serves_unit_tests() -> None:
    with fake_context(task="pay", attempt=2) as voice:
        context().progress(0.25, "begun")
        context().heartbeat()
        context().logger.warning("careful")

        assert (context().task, context().attempt) == ("pay", 2)
    assert (voice.reports, voice.heartbeats) == ([(0.25, "begun")], 1)
    assert voice.text.endswith("WARNING careful\n")


def test_a_task_can_look_whether_it_should_stop() -> None:
    with fake_context() as voice:
        context().raise_if_cancelled()
        voice.cancelled = True

        with pytest.raises(TaskCancelled):
            context().raise_if_cancelled()


def test_the_idempotency_key_stays_and_the_attempt_key_changes() -> None:
    keys = []
    for attempt in (1, 2):
        with fake_context(attempt=attempt):
            keys.append((context().idempotency_key, context().attempt_key))

    assert keys[0][0] == keys[1][0]
    assert keys[0][1] != keys[1][1]


def test_printed_text_goes_to_the_task_that_prints_it() -> None:
    real = io.StringIO()
    stream = RoutedStream(real)
    with fake_context() as one, ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, print, "from a thread", file=stream).result()
    with fake_context() as other:
        print("from another", file=stream)
    print("from nowhere", file=stream)

    assert (one.text, other.text) == ("from a thread\n", "from another\n")
    assert real.getvalue() == "from nowhere\n"


def test_lines_of_the_task_logger_outside_a_task_are_dropped_quietly() -> None:
    logging.getLogger("tidemill.task").info("nobody listens")


def text_of(output: Output) -> str:
    return "".join(c.text for m in output.take() if isinstance(m, Logs) for c in m.chunks)


def test_too_much_text_loses_its_beginning_and_says_how_much() -> None:
    output = Output(1_000)
    whole = "".join(f"line {number}\n" for number in range(10_000))
    for line in whole.splitlines(keepends=True):
        output.write(a_token(), line)

    [[chunk]] = [message.chunks for message in output.take() if isinstance(message, Logs)]

    assert whole.endswith(chunk.text)
    assert chunk.dropped == len(whole) - len(chunk.text)
    assert len(chunk.text) < 2_100


def test_what_all_attempts_write_is_bounded_together() -> None:
    output = Output(64 * 1024)
    for position in range(100):
        output.write(a_token(position), "x" * 200_000)

    sizes = [sum(len(c.text) for c in m.chunks) for m in output.take() if isinstance(m, Logs)]

    assert sum(sizes) < 1_500_000
    assert max(sizes) <= 256 * 1024


def test_text_is_gathered_from_many_threads_without_loss() -> None:
    output = Output(1_000_000)

    def write(position: int) -> None:
        for _ in range(1_000):
            output.write(a_token(position), "x")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(text_of(output)) == 8_000


def test_the_first_words_wake_the_sender_once() -> None:
    output = Output(1_000)
    wakes: list[int] = []
    output.on_first = lambda: wakes.append(1)

    output.write(a_token(), "a")
    output.report(a_token(), 0.5, "")
    output.write(a_token(), "")

    assert len(wakes) == 1
