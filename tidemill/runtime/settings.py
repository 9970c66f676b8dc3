"""Every setting of every role, once: name, type, default, bounds, who uses it, what it means."""

# ruff: noqa: RUF009 - `setting` makes fields

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any

from tidemill.domain.errors import InvalidInput, Problem
from tidemill.runtime.addresses import DEFAULT_STORE, StoreAddress, parse_store
from tidemill.runtime.setting_checks import (
    SHARED_TOKEN,
    SINGLE_USER,
    check_auth,
    check_broker,
    check_bus,
    check_endpoint,
    check_endpoints,
    check_level,
    check_origins,
    check_registration,
)
from tidemill.runtime.setting_kinds import KINDS
from tidemill.runtime.setting_rows import Setting, setting

SLOTS_MAX = 1_000
WORKERS_MAX = 64
SECONDS_MAX = 3_600.0
RESULT_BYTES_MAX = 4 * 1024 * 1024
SILENT_PINGS = 3
"""After so many pings that did not come, the other side is taken for gone."""

LOOK = "look"  # runs, show, dead, cancel, config: whoever only needs to find the store
LOCAL = ("run", "up")
SCHEDULING = ("scheduler", *LOCAL)
WORKING = ("worker", *LOCAL)
HTTP = ("api", "up")
SERVING = ("scheduler", "notifier", *HTTP)
GUARDED = ("scheduler", "worker", "up")
ROLES = ("run", "start", LOOK, "api", "scheduler", "worker", "notifier", "migrate", "up")
STORING = tuple(role for role in ROLES if role != "worker")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # there are secrets among them
class Settings:
    """The settings of one process; the table below is read off these fields."""

    store: StoreAddress = setting(
        lambda: parse_store(DEFAULT_STORE),
        "where state is kept: a path, sqlite:///path or postgresql://…",
        STORING,
        metavar="URL",
    )
    bus: str | None = setting(
        None,
        "what carries hints and events: memory:, postgresql://…, redis://… or kafka://…; "
        "by default the PostgreSQL of the store, or memory: with SQLite",
        (*SERVING, "run", "start"),
        metavar="URL",
        tuning=True,
        check=check_bus,
    )
    via: str | None = setting(
        None,
        "talk to workers over this broker: kafka://… or redis://…",
        ("scheduler", "worker"),
        metavar="URL",
        check=check_broker,
    )
    listen: str | None = setting(
        None,
        "where HTTP is served; port 0 for a free one",
        HTTP,
        metavar="HOST:PORT",
        check=check_endpoint,
        by_role=dict.fromkeys(HTTP, "127.0.0.1:8080"),
    )
    auth: str = setting(
        "identity",
        "who may come: `identity` for accounts, API keys and credentials of workers",
        (*HTTP, "scheduler"),
        metavar="MODE",
        check=check_auth,
        by_role={"up": SINGLE_USER, "scheduler": SHARED_TOKEN},
        only={
            HTTP: "`single-user` for whoever is at this machine, without login",
            ("scheduler",): "`shared-token` for whoever knows the token of --token-file",
        },
    )
    registration: str = setting(
        "off",
        "who may make an account for themselves: `off`, `invitation` or `open` (without a role)",
        HTTP,
        metavar="MODE",
        check=check_registration,
        tuning=True,
    )
    signing_key_file: Path | None = setting(
        None,
        "file with the key (256 bits or more) that signs tokens; "
        "by default one is made and kept in the store",
        (*HTTP, "scheduler"),
        metavar="FILE",
        tuning=True,
    )
    bootstrap_token: str | None = setting(
        None,
        "the token for the first administrator, in the environment only; made up when not given",
        HTTP,
        secret=True,
        flag="",
    )
    cors_origins: tuple[str, ...] = setting(
        (),
        "origins whose web pages may use the API, such as https://ops.example.com",
        HTTP,
        metavar="A,B",
        check=check_origins,
        tuning=True,
    )
    rate_limit: float = setting(
        1_000.0,
        "requests a second that one account may send; 0 for no limit. "
        "There is none in single-user mode",
        HTTP,
        bounds=(0, 1_000_000),
        metavar="N",
        tuning=True,
    )
    listen_workers: str | None = setting(
        None,
        "where workers connect over TCP; workers of `up` need none",
        ("scheduler", "up"),
        metavar="HOST:PORT",
        check=check_endpoint,
        by_role={"scheduler": "127.0.0.1:7300"},
        also={"scheduler": "--listen"},
    )
    connect: tuple[str, ...] = setting(
        (),
        "schedulers to work for, HOST:PORT or unix:PATH: any of them, and the next when it is lost",
        ("worker",),
        metavar="HOST:PORT",
        check=check_endpoints,
    )
    workers: int = setting(1, "worker processes", LOCAL, bounds=(0, WORKERS_MAX), metavar="N")
    slots: int = setting(
        64, "tasks that one worker runs at once", WORKING, bounds=(1, SLOTS_MAX), metavar="N"
    )
    queues: tuple[str, ...] = setting(
        ("default",), "queues that the workers serve", ("worker", "up"), metavar="A,B", filled=True
    )
    labels: Mapping[str, str] = setting(
        dict, "labels that the workers have", ("worker", "up"), metavar="NAME=VALUE"
    )
    imports: tuple[str, ...] = setting(
        (),
        "modules or files with functions for tasks",
        WORKING,
        flag="--import",
        metavar="MODULE|FILE",
    )
    executors: tuple[str, ...] = setting(
        (),
        "executors that workers offer, for a scheduler: may offer; all if not given",
        (*SCHEDULING, "worker"),
        metavar="A,B",
        tuning=True,
    )
    reload: bool = setting(
        False, "replace the workers when a file that they import changes", ("up",)
    )
    secrets_dir: Path | None = setting(
        None,
        "folder with secrets for tasks, one file each, called like the secret",
        WORKING,
        metavar="FOLDER",
    )
    secrets_key_file: Path | None = setting(
        None,
        "file with the key, 256 bits, under which secrets in the store are sealed",
        (*SCHEDULING, "api"),
        metavar="FILE",
    )
    grace: float = setting(
        10.0,
        "seconds that running tasks and requests get to finish when asked to stop",
        (*WORKING, "api"),
        bounds=(0, SECONDS_MAX),
        metavar="SECONDS",
    )
    result_bytes_max: int = setting(
        256 * 1024,
        "the largest result of a task",
        (*SCHEDULING, "worker"),
        bounds=(1, RESULT_BYTES_MAX),
        metavar="BYTES",
        tuning=True,
    )
    ping_seconds: float = setting(
        1.0,
        "how often worker and scheduler tell each other that they are there; "
        "after three times as long without a word each looks for another. "
        "The same on both sides",
        (*SCHEDULING, "worker"),
        bounds=(0.1, 60),
        metavar="SECONDS",
        tuning=True,
    )
    session_ttl_seconds: float = setting(
        6.0,
        "after so long without a word from its worker, a task runs elsewhere",
        SCHEDULING,
        bounds=(1, SECONDS_MAX),
        metavar="SECONDS",
        tuning=True,
    )
    scan_seconds: float = setting(
        1.0,
        "how often retries, deadlines and lost workers are looked for",
        SCHEDULING,
        bounds=(0.05, 60),
        metavar="SECONDS",
        tuning=True,
    )
    dispatch_parallelism: int = setting(
        4,
        "batches of assignments that are prepared at the same time",
        SCHEDULING,
        bounds=(1, 64),
        metavar="N",
        tuning=True,
    )
    inbox_items_max: int = setting(
        10_000,
        "outcomes and wake-ups that wait for a turn; workers wait when it is full",
        SCHEDULING,
        bounds=(100, 1_000_000),
        metavar="N",
        tuning=True,
    )
    turn_items_max: int = setting(
        1_000,
        "items that one turn takes",
        SCHEDULING,
        bounds=(1, 100_000),
        metavar="N",
        tuning=True,
    )
    tls_cert: Path | None = setting(
        None, "certificate (PEM) of this process", (*GUARDED, "api"), metavar="FILE"
    )
    tls_key: Path | None = setting(None, "its private key (PEM)", (*GUARDED, "api"), metavar="FILE")
    tls_client_ca: Path | None = setting(
        None,
        "only workers with a certificate of this CA may connect",
        ("scheduler", "up"),
        metavar="FILE",
    )
    tls_ca: Path | None = setting(
        None, "CA (PEM) of the schedulers' certificates", ("worker",), metavar="FILE"
    )
    token_file: Path | None = setting(
        None,
        "file with the secret that workers and schedulers share, or with a worker's credential",
        GUARDED,
        metavar="FILE",
    )
    token: str | None = setting(
        None,
        "the secret itself; in the environment only",
        GUARDED,
        secret=True,
        flag="",
    )
    insecure: bool = setting(
        False,
        "allow other machines without TLS or without a token",
        (*GUARDED, "api"),
    )
    health: str | None = setting(
        None,
        "serve /live and /ready over HTTP",
        ("api", "scheduler", "worker", "notifier", "up"),
        metavar="HOST:PORT",
        check=check_endpoint,
    )
    name: str | None = setting(
        None,
        "how this process is called; host and process id if not given",
        ("api", "scheduler", "worker", "notifier", "up"),
        metavar="NAME",
    )
    migrate: bool = setting(
        False, "bring the schema up to date at start", ("api", "scheduler", "notifier")
    )
    start_retry: float = setting(
        0.0,
        "seconds to go on trying when the store or the broker cannot be reached at start",
        ("api", "scheduler", "worker", "notifier", "migrate", "up", "start"),
        bounds=(0, 24 * 3_600),
        metavar="SECONDS",
    )
    log_level: str = setting(
        "warning",
        "what is logged to standard error: debug, info, warning or error",
        ("api", "scheduler", "worker", "notifier", "migrate", "up"),
        metavar="LEVEL",
        check=check_level,
    )

    def __post_init__(self) -> None:
        if problems := problems_of(self):
            raise InvalidInput(problems)

    @property
    def process_name(self) -> str:
        """How this process is called in sessions, leases and logs."""
        return self.name or f"{socket.gethostname()}-{os.getpid()}"


def _make(one: Field[Any]) -> Callable[[], Any]:
    made = one.default_factory
    return made if callable(made) else lambda: one.default


SETTINGS: Mapping[str, Setting] = {
    one.name: Setting(name=one.name, kind=KINDS[str(one.type)], make=_make(one), **one.metadata)
    for one in fields(Settings)
}
"""The table."""


def settings_of(role: str | None) -> list[Setting]:
    """The rows of one role, or all."""
    return [one for one in SETTINGS.values() if role is None or role in one.roles]


def problems_of(settings: Settings) -> list[Problem]:
    """Everything that is wrong with these values; paths are names of settings."""
    found = [
        Problem(path=one.name, message=complaint, code="range")
        for one in SETTINGS.values()
        if (complaint := one.complaint(getattr(settings, one.name))) is not None
    ]
    return found or list(_contradictions(settings))


def _contradictions(settings: Settings) -> list[Problem]:
    ttl = settings.session_ttl_seconds
    found = []
    if settings.ping_seconds * 4 > ttl:
        text = f"must be at most a quarter of session_ttl_seconds, which is {ttl:g}"
        found.append(Problem(path="ping_seconds", message=text, code="range"))
    if settings.scan_seconds * 3 > ttl:
        text = f"must be at most a third of session_ttl_seconds, which is {ttl:g}"
        found.append(Problem(path="scan_seconds", message=text, code="range"))
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing = "tls_key" if settings.tls_key is None else "tls_cert"
        text = "is missing: tls_cert and tls_key belong together"
        found.append(Problem(path=missing, message=text, code="missing"))
    if settings.tls_client_ca is not None and settings.tls_cert is None:
        text = "is missing: without it tls_client_ca keeps nobody out"
        found.append(Problem(path="tls_cert", message=text, code="missing"))
    if settings.token is not None and settings.token_file is not None:
        text = "is given, and so is TIDEMILL_TOKEN: keep one of them"
        found.append(Problem(path="token_file", message=text, code="twice"))
    return found
