"""Whether this machine could run a definition: asked of a child process, before anything starts.

`python -m tidemill.runtime.rehearsal FD` reads the tasks from standard input, imports what a worker
would import, asks the executors that a worker would have, and writes what is wrong to a file that
only the two processes have. User code, plug-ins included, runs in the child alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import msgspec

from tidemill.domain.errors import Problem
from tidemill.domain.problems import ProblemList, did_you_mean, parse_path, show
from tidemill.runtime.system import SystemClock, SystemEntropy
from tidemill.worker.executor import Executor, Workshop
from tidemill.worker.failures import TaskFailure
from tidemill.worker.library import load_what_works
from tidemill.worker.plugins import find_executors
from tidemill.worker.processes import Commands, describe_exit, die_with_parent
from tidemill.worker.threads import Threads

REHEARSAL_SECONDS_MAX = 60.0
LAST_WORDS_BYTES = 2_000


class TaskSketch(msgspec.Struct, frozen=True, array_like=True):
    """What an executor needs to know of a task to judge it."""

    position: int
    executor: str
    params: dict[str, Any]
    inputs: tuple[str, ...]


class Rehearsal(msgspec.Struct, frozen=True):
    """What the child is asked: tasks, and what their worker would import, by its place."""

    tasks: tuple[TaskSketch, ...]
    imports: dict[str, str]


def rehearse(definition: Any, imports: Mapping[str, str]) -> tuple[Problem, ...]:
    """Why a worker of this machine could not run these tasks; paths as in the definition.

    Parts of the definition that have no meaning are left to those who check it. `imports` has
    modules and files by the place that names them, the path of a problem with one of them.
    """
    try:
        request = msgspec.json.encode(Rehearsal(tuple(_sketches(definition)), dict(imports)))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return ()  # not JSON: the definition is refused for that
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
        complaint = _ask_child(request, answer, words)
        if complaint is None:
            answer.seek(0)
            return msgspec.json.decode(answer.read(), type=tuple[Problem, ...])
        place = next(iter(imports), "") if len(imports) == 1 else "imports"
        message = f"importing {'it' if len(imports) == 1 else 'them'} {complaint}{_tail(words)}"
        return (Problem(path=place, message=message, code="BAD_IMPORT"),)


def _sketches(definition: Any) -> Iterator[TaskSketch]:
    tasks = definition.get("tasks") if isinstance(definition, dict) else None
    for position, task in enumerate(tasks if isinstance(tasks, list | tuple) else ()):
        given = task if isinstance(task, dict) else {}
        executor, params = given.get("executor"), given.get("params", {})
        inputs = given.get("inputs", {})
        if isinstance(executor, str) and isinstance(params, dict) and isinstance(inputs, dict):
            yield TaskSketch(position, executor, params, tuple(inputs))


def _ask_child(request: bytes, answer: IO[bytes], words: IO[bytes]) -> str | None:
    """Have the answer written; what went wrong instead, if something did."""
    descriptor = answer.fileno()
    try:
        status = subprocess.run(  # noqa: S603 - our own module, nothing of the definition in it
            [sys.executable, "-m", "tidemill.runtime.rehearsal", str(descriptor)],
            pass_fds=[descriptor],
            input=request,
            stdout=words,
            stderr=words,
            timeout=REHEARSAL_SECONDS_MAX,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return f"takes more than {REHEARSAL_SECONDS_MAX:g} s"
    if status == 0 and os.fstat(descriptor).st_size:
        return None
    return f"ended the process, {describe_exit(status)}"


def _tail(words: IO[bytes]) -> str:
    words.seek(max(0, words.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
    text = " ".join(words.read().decode("utf-8", "replace").split())
    return f": {text}" if text else ""


def find_problems(request: Rehearsal) -> tuple[Problem, ...]:
    """The child's part: imports user code, so never call it in a process that owns a store."""
    problems = ProblemList()
    library, failed = load_what_works(tuple(request.imports.values()))
    for place, name in request.imports.items():
        if name in failed:
            message = f"cannot be imported: {failed[name]}"
            problems.add(Problem(path=place, message=message, code="BAD_IMPORT"))
    workshop = Workshop(
        clock=SystemClock(),
        entropy=SystemEntropy(),
        library=library,
        threads=Threads(1),
        commands=Commands(),
    )
    executors = find_executors(workshop)
    for task in request.tasks:
        problems.extend(_task_problems(task, executors))
    return problems.all()


def _task_problems(task: TaskSketch, executors: Mapping[str, Executor]) -> Iterator[Problem]:
    here = f"tasks[{task.position}]"
    executor = executors.get(task.executor)
    if executor is None:
        hint = did_you_mean(task.executor, list(executors))
        known = ", ".join(sorted(executors))
        message = f"unknown executor {show(task.executor)}{hint or ';'} known here: {known}"
        yield Problem(path=f"{here}.executor", message=message, code="UNKNOWN_EXECUTOR")
        return
    try:
        texts = executor.rehearse(task.params, task.inputs)
    except TaskFailure as error:
        yield Problem(path=f"{here}.executor", message=str(error), code="BROKEN_EXECUTOR")
    except Exception as error:  # noqa: BLE001  (a plug-in's code may raise anything)
        message = f"{show(task.executor)} cannot check it: {type(error).__name__}: {error}"
        yield Problem(path=f"{here}.params", message=message, code="BROKEN_EXECUTOR")
    else:
        yield from (_placed(here, text) for text in texts)


def _placed(here: str, text: str) -> Problem:
    """Executors begin a text with the field it is about."""
    field, _, message = text.partition(": ")
    if message and parse_path(field)[:1] in {("params",), ("inputs",)}:
        return Problem(path=f"{here}.{field}", message=message, code="BAD_PARAMS")
    return Problem(path=f"{here}.params", message=text, code="BAD_PARAMS")


def _main(arguments: Sequence[str]) -> None:
    die_with_parent()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Rehearsal)
    problems = find_problems(request)
    with os.fdopen(int(arguments[0]), "wb") as answer:
        answer.write(msgspec.json.encode(problems))
    os._exit(0)  # without waiting for whatever the modules have left running


if __name__ == "__main__":
    _main(sys.argv[1:])
