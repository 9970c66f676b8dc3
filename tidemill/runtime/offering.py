"""What the workers of this process offer, and how they are started."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import replace
from itertools import count, takewhile

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.waiting import WorkerStanding, explain_wait
from tidemill.domain.workflow import Workflow
from tidemill.runtime.resolving import CONFIG_VARIABLE
from tidemill.runtime.setting_kinds import spelled
from tidemill.runtime.settings import SETTINGS, Settings
from tidemill.scheduler.sessions import AttachedSession
from tidemill.sdk.secrets import secret_variables

HANDED_ON = (
    "slots",
    "queues",
    "labels",
    "imports",
    "executors",
    "grace",
    "result_bytes_max",
    "ping_seconds",
    "secrets_dir",
)
"""What a worker of this process is told; for the rest its way is a private socket."""

DEFAULT_QUEUE = "default"
API_KEY = "TIDEMILL_API_KEY"
"""Of the client, which a worker does without, and so does not load."""
_VARIABLES = frozenset({API_KEY, *(one.variable for one in SETTINGS.values())})
_ONE_LABEL = "workers on one machine have one value for each label"


def worker_command(settings: Settings, address: str, name: str) -> list[str]:
    """The command line of a worker process that serves the scheduler behind `address`."""
    command = [sys.executable, "-m", "tidemill.cli", "worker"]
    command += ["--connect", address, "--name", name]
    for one in (SETTINGS[each] for each in HANDED_ON):
        for text in spelled(getattr(settings, one.name)):
            command += [one.option, text]
    return command


def worker_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """What user code may see: no setting of this process, which may hold passwords, and no key."""
    kept = {name: text for name, text in environ.items() if name not in _VARIABLES}
    return {**kept, CONFIG_VARIABLE: ""}


def take_secrets(environ: MutableMapping[str, str]) -> dict[str, str]:
    """The variables that hold secrets, taken out: tasks get those that they name, no others."""
    taken = secret_variables(environ)
    for name in taken:
        del environ[name]
    return taken


def _is_private(variable: str) -> bool:
    return variable in _VARIABLES or bool(secret_variables({variable: ""}))


def hide_settings() -> None:
    """Blank the settings where every process of the same user can read them; Linux only.

    /proc/PID/environ shows the memory that a process was started with, whatever it unset since.
    `os.environ` keeps what it had.
    """
    if sys.platform != "linux":
        return
    environ = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    for place in takewhile(bool, (environ[number] for number in count())):
        assert place is not None
        name, _, value = ctypes.string_at(place).partition(b"=")
        if _is_private(name.decode(errors="replace")):
            ctypes.memset(place + len(name) + 1, 0, len(value))


def serving(settings: Settings, workflows: Iterable[Workflow]) -> Settings:
    """The settings with every queue and label that the tasks of these workflows ask for."""
    queues: dict[str, None] = {}
    labels: dict[str, str] = {}
    known = list(workflows)
    if any(workflow.output is not None for workflow in known):
        queues[DEFAULT_QUEUE] = None  # where outputs are evaluated
    for task in (task for workflow in known for task in workflow.tasks):
        queues[task.queue] = None
        for label, value in task.labels.items():
            if labels.setdefault(label, value) != value:
                message = f"is {labels[label]} for one task and {value} for another: {_ONE_LABEL}"
                path = f"tasks.{task.id}.labels.{label}"
                raise InvalidInput([Problem(path=path, message=message, code="labels")])
    return replace(settings, queues=tuple(queues) or (DEFAULT_QUEUE,), labels=labels)


def unoffered(routes: Iterable[str], sessions: Iterable[AttachedSession]) -> str | None:
    """Why workers that are connected could never run some task of these routes."""
    workers = [
        WorkerStanding(
            queues=tuple(one.queues), labels=one.labels, offers=tuple(one.offers), slots=1
        )
        for one in sessions
    ]
    reasons = (explain_wait(route, workers) for route in dict.fromkeys(routes))
    return next((reason for reason in reasons if reason is not None), None)


def unserved(settings: Settings, workflow: Workflow) -> set[str]:
    """The queues and labels that tasks of a workflow ask for and these workers do not have."""
    missing = {
        f"queue {task.queue}" for task in workflow.tasks if task.queue not in settings.queues
    }
    wanted = {pair for task in workflow.tasks for pair in task.labels.items()}
    return missing | {f"label {'='.join(pair)}" for pair in wanted - set(settings.labels.items())}
