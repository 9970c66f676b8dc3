"""From exceptions to reports: what a person should see of an attempt that went wrong."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tidemill.domain.errors import TidemillError
from tidemill.domain.events import Failed
from tidemill.domain.retry import RETRY_AFTER_SECONDS_MAX
from tidemill.domain.task_run import TaskError
from tidemill.sdk.context import FinalError, RetryLater
from tidemill.worker.output import clean_text

MESSAGE_CHARACTERS_MAX = 8 * 1024
TRACEBACK_CHARACTERS_MAX = 64 * 1024
CHAIN_MAX = 20

_ENGINE = str(Path(__file__).resolve().parents[1]) + "/"
_CARRIERS = ("/asyncio/", "/concurrent/futures/", "/threading.py", "/contextlib.py")


class TaskFailure(Exception):
    """How an executor says what went wrong, in its own words and without a traceback."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        final: bool = False,
        retry_after_seconds: float | None = None,
        traceback: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.final = final
        self.retry_after_seconds = retry_after_seconds
        self.traceback = traceback


def failure_of(error: BaseException, epoch: int, mask: Callable[[str], str] = str) -> Failed:
    """The report about an attempt that raised `error`; `mask` takes secrets out of its texts."""
    if isinstance(error, TaskFailure):
        return Failed(
            epoch=epoch,
            error=task_error(mask(error.kind), mask(str(error)), mask(error.traceback)),
            final=error.final,
            retry_after_seconds=_patience(error.retry_after_seconds),
        )
    # The engine's own refusals (an input that does not resolve) name the fix, not a place in code.
    trace = "" if isinstance(error, TidemillError) else user_traceback(error)
    return Failed(
        epoch=epoch,
        error=task_error(mask(type(error).__name__), mask(_message(error)), mask(trace)),
        final=isinstance(error, FinalError | TidemillError),
        retry_after_seconds=_patience(error.seconds) if isinstance(error, RetryLater) else None,
    )


def timeout_failure(kind: str, message: str, epoch: int) -> Failed:
    """The report about an attempt that took too long."""
    return Failed(epoch=epoch, error=task_error(kind, message, ""), timeout=True)


def task_error(kind: str, message: str, trace: str) -> TaskError:
    """An error within its bounds: the start of the message, both ends of the traceback."""
    return TaskError(
        type=clean_text(kind[:256]),
        message=clean_text(_shorten(message, MESSAGE_CHARACTERS_MAX)),
        traceback=clean_text(_middle_out(trace, TRACEBACK_CHARACTERS_MAX)),
    )


def user_traceback(error: BaseException) -> str:
    """The traceback with its causes, without the frames of the engine."""
    try:
        trace = traceback.TracebackException.from_exception(error)
        _drop_engine_frames(trace, CHAIN_MAX)
        return "".join(trace.format())
    except Exception as unprintable:  # noqa: BLE001  (an error whose own methods raise)
        return f"the traceback cannot be shown: {type(unprintable).__name__}"


def blocking_frames(stack: Sequence[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The user's frames below the loop's own, outermost first; none when the loop is idle."""
    below = 0
    for place, (frame, inner) in enumerate(zip_longest(stack, stack[1:]), 1):
        if _is_loop(frame, inner):
            below = place
    frames = list(stack[below:]) if below else []
    while frames and _is_carrier(frames[0].filename):
        frames.pop(0)
    return [frame for frame in frames if not frame.filename.startswith(_ENGINE)]


def _is_loop(frame: traceback.FrameSummary, inner: traceback.FrameSummary | None) -> bool:
    if frame.name == "_run" and frame.filename.endswith("/asyncio/events.py"):
        return True
    # uvloop has no frames of its own: its runner calls callbacks, or nothing while it waits.
    runs = frame.name == "run" and frame.filename.endswith("/asyncio/runners.py")
    return runs and inner is not None and not inner.filename.endswith("/asyncio/base_events.py")


def _drop_engine_frames(trace: traceback.TracebackException, depth_left: int) -> None:
    if depth_left == 0:
        trace.__cause__ = trace.__context__ = None
        return
    frames = list(trace.stack)
    while frames and _is_carrier(frames[0].filename):
        frames.pop(0)
    trace.stack = traceback.StackSummary.from_list(
        [frame for frame in frames if not frame.filename.startswith(_ENGINE)]
    )
    linked = [trace.__cause__, trace.__context__, *(trace.exceptions or ())]
    for other in linked:
        if other is not None:
            _drop_engine_frames(other, depth_left - 1)


def _is_carrier(filename: str) -> bool:
    """Whether a frame above the user's first one only carries the call."""
    return filename.startswith(_ENGINE) or any(part in filename for part in _CARRIERS)


def _patience(wish: Any) -> float | None:
    """The seconds wished for, if they are a number: a report must never be refused as malformed."""
    try:
        seconds = float(wish)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(seconds) else min(RETRY_AFTER_SECONDS_MAX, max(0.0, seconds))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as unprintable:  # noqa: BLE001  (user code: __str__ may do anything)
        return f"the message cannot be shown: {type(unprintable).__name__}"


def _shorten(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    return f"{text[:characters_max]}… ({len(text)} characters)"


def _middle_out(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    half = characters_max // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
