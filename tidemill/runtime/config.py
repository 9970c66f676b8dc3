"""Settings of a process, with their defaults and checks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.domain.workflow import Workflow

DEFAULT_STORE = ".tidemill/tidemill.db"
WORKERS_MAX = 64
SLOTS_MAX = 1_000
GRACE_SECONDS_MAX = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """Where durable state lives: exactly one of a SQLite file and a PostgreSQL address."""

    path: Path | None = None
    dsn: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else "postgresql"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """How the embedded system runs: which store, how many workers, what they import."""

    store: StoreAddress
    workers: int = 1
    slots: int = 64  # of each worker
    imports: tuple[str, ...] = ()
    queues: tuple[str, ...] = ("default",)
    labels: Mapping[str, str] = field(default_factory=dict)
    grace_seconds: float = 10.0  # what running tasks get to finish when the system stops

    def __post_init__(self) -> None:
        problems = [
            *_outside("workers", self.workers, 0, WORKERS_MAX),
            *_outside("slots", self.slots, 1, SLOTS_MAX),
            *_outside("grace_seconds", self.grace_seconds, 0, GRACE_SECONDS_MAX),
        ]
        if problems:
            raise InvalidInput(problems)

    def worker_command(self, address: str, name: str) -> list[str]:
        """The command line of a worker process that serves the scheduler behind `address`."""
        options = {
            "--address": address,
            "--name": name,
            "--slots": str(self.slots),
            "--queues": ",".join(self.queues),
            "--grace-seconds": str(self.grace_seconds),
        }
        command = [sys.executable, "-m", "tidemill.runtime.worker_process"]
        command += [text for option in options.items() for text in option]
        command += [text for pair in self.labels.items() for text in ("--label", "=".join(pair))]
        return command + [text for given in self.imports for text in ("--import", given)]


def serving(settings: EmbeddedSettings, workflows: Iterable[Workflow]) -> EmbeddedSettings:
    """The settings with every queue and label that the tasks of these workflows ask for."""
    queues: dict[str, None] = {}
    labels: dict[str, str] = {}
    for task in (task for workflow in workflows for task in workflow.tasks):
        queues[task.queue] = None
        for label, value in task.labels.items():
            if labels.setdefault(label, value) != value:
                message = f"is {labels[label]} for one task and {value} for another: {_ONE_LABEL}"
                path = f"tasks.{task.id}.labels.{label}"
                raise InvalidInput([Problem(path=path, message=message, code="labels")])
    return replace(settings, queues=tuple(queues) or ("default",), labels=labels)


def unserved(settings: EmbeddedSettings, workflow: Workflow) -> set[str]:
    """The queues and labels that tasks of a workflow ask for and these workers do not have."""
    missing = {
        f"queue {task.queue}" for task in workflow.tasks if task.queue not in settings.queues
    }
    wanted = {pair for task in workflow.tasks for pair in task.labels.items()}
    return missing | {f"label {'='.join(pair)}" for pair in wanted - set(settings.labels.items())}


_ONE_LABEL = "workers on one machine have one value for each label"


def parse_store(text: str) -> StoreAddress:
    """Read `sqlite:///path`, a plain path or `postgresql://…`."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _file(text, text)
    match scheme:
        case "sqlite":
            return _file(text, rest.removeprefix("/"))
        case "postgresql" | "postgres":
            return StoreAddress(dsn=text)
        case _:
            raise _wrong_store(f"{scheme}:// is not a store that Tidemill knows")


def _file(text: str, path: str) -> StoreAddress:
    if not path or path.endswith("/"):
        raise _wrong_store(f"{text!r} names no file")
    return StoreAddress(path=Path(path).expanduser().absolute())


def _wrong_store(what: str) -> InvalidInput:
    fix = "use a path, sqlite:///path (sqlite:////path for an absolute one) or postgresql://…"
    return InvalidInput([Problem(path="--store", message=f"{what}; {fix}", code="store")])


def _outside(name: str, value: float, least: float, most: float) -> list[Problem]:
    if least <= value <= most:
        return []
    message = f"must be between {least:g} and {most:g}, not {value:g}"
    return [Problem(path=name, message=message, code="range")]
