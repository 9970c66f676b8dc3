"""What workers report, held to its bounds: no stranger's bytes reach the store unchecked.

A result that breaks a rule makes its own task fail, for good and by name; nothing else notices.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidemill.domain.events import Failed, Succeeded, WorkerReport
from tidemill.domain.json_values import JSON_DEPTH_MAX
from tidemill.domain.task_run import TaskError
from tidemill.protocol.messages import Outcome, ProgressReport

TYPE_CHARACTERS_MAX = 256
MESSAGE_CHARACTERS_MAX = 16 * 1024
TRACEBACK_CHARACTERS_MAX = 128 * 1024
PROGRESS_CHARACTERS_MAX = 1_000

_decode = msgspec.json.Decoder().decode


def checked_outcome(outcome: Outcome, result_bytes_max: int) -> Outcome:
    """The outcome as it may be committed: as it is, or as the failure that it amounts to."""
    report = checked_report(outcome.report, result_bytes_max)
    return outcome if report is outcome.report else Outcome(outcome.token, report)


def checked_report(report: WorkerReport, result_bytes_max: int) -> WorkerReport:
    """The same for a report on its own."""
    match report:
        case Succeeded(epoch, bytes() as result):
            return _checked_result(report, epoch, result, result_bytes_max)
        case Failed(error=error):
            cleaned = _cleaned(error)
            return report if cleaned == error else msgspec.structs.replace(report, error=cleaned)
        case _:
            return report


def checked_progress(report: ProgressReport) -> ProgressReport:
    """Progress with a message of bounded length."""
    if len(report.message) <= PROGRESS_CHARACTERS_MAX:
        return report
    return ProgressReport(report.token, report.fraction, report.message[:PROGRESS_CHARACTERS_MAX])


def _checked_result(
    report: Succeeded, epoch: int, result: bytes, bytes_max: int
) -> Succeeded | Failed:
    if len(result) > bytes_max:
        return _failed(
            epoch,
            "ResultTooLarge",
            f"the result takes {len(result)} bytes, {bytes_max} is the limit; "
            "store the data elsewhere and return where it is",
        )
    problem = _json_problem(result)
    if problem is not None:
        return _failed(epoch, "ResultNotSerializable", f"the result is not JSON: {problem}")
    return Succeeded(epoch) if result == b"null" else report


def _json_problem(data: bytes) -> str | None:
    try:
        value = _decode(data)
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except RecursionError:
        return f"it is nested more than {JSON_DEPTH_MAX} deep"
    except msgspec.MsgspecError as error:
        return str(error)
    # As many opening brackets are needed for that depth, so most results need no second look.
    if data.count(b"[") + data.count(b"{") > JSON_DEPTH_MAX and _is_deeper(value, JSON_DEPTH_MAX):
        return f"it is nested more than {JSON_DEPTH_MAX} deep"
    return None


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        inner = [item for item in level if isinstance(item, dict | list)]
        if not inner:
            return False
        level = [
            part for item in inner for part in (item.values() if isinstance(item, dict) else item)
        ]
    return True


def _failed(epoch: int, kind: str, message: str) -> Failed:
    return Failed(epoch=epoch, error=TaskError(type=kind, message=message), final=True)


def _cleaned(error: TaskError) -> TaskError:
    return TaskError(
        type=_text(error.type, TYPE_CHARACTERS_MAX) or "Error",
        message=_text(error.message, MESSAGE_CHARACTERS_MAX),
        traceback=_text(error.traceback, TRACEBACK_CHARACTERS_MAX),
    )


def _text(text: str, characters_max: int) -> str:
    """Bounded, and without NUL, which PostgreSQL cannot store."""
    return text[:characters_max].replace("\0", "\ufffd")
