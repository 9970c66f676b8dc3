"""One attempt from assignment to report: resolve inputs, run the executor, encode the result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from tidemill.domain.events import Failed, Succeeded
from tidemill.domain.masking import Masking
from tidemill.domain.references import evaluate_output, resolve_inputs
from tidemill.domain.workflow import OUTPUT_ID, InputSource
from tidemill.protocol.messages import Assignment
from tidemill.sdk.context import Context, enter_context
from tidemill.worker.executor import Call, Executor
from tidemill.worker.failures import TaskFailure, failure_of
from tidemill.worker.results import encode_result

_NOTHING = b"{}"
_params = msgspec.json.Decoder(dict[str, Any])
_inputs = msgspec.json.Decoder(dict[str, InputSource])
_anything = msgspec.json.Decoder()


async def execute(
    assignment: Assignment,
    executors: Mapping[str, Executor],
    context: Context,
    result_bytes_max: int,
    masking: Masking,
) -> Succeeded | Failed:
    """Run one attempt. Whatever user code raises becomes a report; only cancelling passes."""
    epoch = assignment.token.epoch
    try:
        value = await _run(assignment, executors, context)
        result = encode_result(value, result_bytes_max)
        return Succeeded(epoch, masking.mask_json(result) if masking and result else result)
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  (SystemExit in user code ends the task alone)
        report = failure_of(error, epoch, masking.mask)
        error.with_traceback(None)  # its frames hold what the task held, such as a huge result
        return report


async def _run(assignment: Assignment, executors: Mapping[str, Executor], context: Context) -> Any:
    try:
        params = _params.decode(assignment.params)
        if assignment.executor == OUTPUT_ID:
            return evaluate_output(params["expression"], _results(assignment))
        inputs = _resolve(assignment, context)
    except (msgspec.DecodeError, RecursionError, KeyError) as error:
        raise TaskFailure(
            "MalformedAssignment", f"the task cannot be read: {error}", final=True
        ) from error
    executor = executors.get(assignment.executor)
    if executor is None:
        raise _unknown_executor(assignment.executor, executors)
    enter_context(context)
    return await executor.run(Call(params, inputs, context))


def _resolve(assignment: Assignment, context: Context) -> dict[str, Any]:
    if assignment.inputs == _NOTHING:
        return {}
    run_input = _anything.decode(assignment.run_input)
    return resolve_inputs(
        _inputs.decode(assignment.inputs), run_input, _results(assignment), context.secret
    )


def _results(assignment: Assignment) -> dict[str, Any]:
    return {task: _anything.decode(data) for task, data in assignment.results.items()}


def _unknown_executor(name: str, executors: Mapping[str, Executor]) -> TaskFailure:
    known = ", ".join(sorted(executors)) or "none"
    return TaskFailure(
        "UnknownExecutor", f"executor: this worker has no {name!r}; it has: {known}", final=True
    )
