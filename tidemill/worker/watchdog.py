"""Notices that user code blocks the event loop, and says who and where while it lasts.

A blocked loop answers no ping: after some seconds the scheduler counts the worker as lost, with all
that it runs. The loop cannot tell that about itself, so a thread does. A loop that does not come
back is given up: all that the process runs has been counted as lost long before.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Sequence

from tidemill.worker.attempt import Attempt
from tidemill.worker.failures import blocking_frames

BLOCKED_SECONDS = 2.0  # a session survives some more
HUNG_SECONDS = 30.0  # long after any session has expired
FRAMES_MAX = 20
ADVICE = (
    "an async function that computes or sleeps blocks every task of this worker: "
    "make it `def`, or use isolation: process"
)

_log = logging.getLogger("tidemill.worker")


class Watchdog:
    """Knocks at the loop while attempts run; barks once for each time nobody answers."""

    def __init__(
        self,
        attempts: Callable[[], Sequence[Attempt]],
        *,
        on_hang: Callable[[], None],
        blocked_seconds: float = BLOCKED_SECONDS,
        hung_seconds: float = HUNG_SECONDS,
    ) -> None:
        self._attempts = attempts
        self._on_hang = on_hang  # called in the thread
        self._blocked_seconds = blocked_seconds
        self._hung_seconds = hung_seconds
        self._stopped = threading.Event()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the loop that runs in this thread."""
        arguments = (loop, threading.get_ident())
        threading.Thread(target=self._watch, args=arguments, daemon=True).start()

    def stop(self) -> None:
        """Let the thread end; safe to call twice."""
        self._stopped.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, home: int) -> None:
        while not self._stopped.wait(self._blocked_seconds / 4):
            if not self._attempts():
                continue
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:
                return  # the loop is closed
            if not answered.wait(self._blocked_seconds):
                self._bark(loop, home)
                self._wait_longer(answered, home)

    def _wait_longer(self, answered: threading.Event, home: int) -> None:
        if not answered.wait(self._hung_seconds - self._blocked_seconds) and _blockers(home):
            _log.error("the event loop has been blocked for %g s: giving up", self._hung_seconds)
            self._on_hang()
        while not (answered.wait(self._blocked_seconds) or self._stopped.is_set()):
            """One bark is enough for one block."""

    def _bark(self, loop: asyncio.AbstractEventLoop, home: int) -> None:
        frames = _blockers(home)
        if not frames:
            return  # nobody's code: the whole process stood still, and goes on now
        attempts = self._attempts()
        running = asyncio.current_task(loop)
        culprit = next((one for one in attempts if one.is_run_by(running)), None)
        who = f" by task {culprit.assignment.task}" if culprit is not None else ""
        news = f"the event loop has been blocked for {self._blocked_seconds:g} s{who}; {ADVICE}"
        trace = "".join(traceback.StackSummary.from_list(frames).format())
        for attempt in attempts:
            # Without knowing whose code it is, everyone gets to see it.
            shown = trace if culprit in {None, attempt} else ""
            attempt.write(f"{news}\n{shown}")
        _log.warning("%s\n%s", news, trace.rstrip())


def _blockers(home: int) -> list[traceback.FrameSummary]:
    """Where user code on the loop is right now; nothing when the loop waits."""
    frame = sys._current_frames().get(home)  # noqa: SLF001  (there is no other way to look)
    if frame is None:
        return []
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame))
    return blocking_frames(list(reversed(stack)))[-FRAMES_MAX:]
