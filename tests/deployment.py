"""Roles apart, as processes: any number of schedulers, workers and notifiers on given servers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.servers.process import free_port
from tidemill.worker.processes import die_with_parent

PROGRAM = (sys.executable, "-m", "tidemill.cli")
ROOT = Path(__file__).resolve().parents[1]
# A server that is away when a role begins may be back soon.
PATIENTLY = ("--start-retry", "3600")
READY_SECONDS = 30.0
STOP_SECONDS = 20.0


class RoleProcess:
    """One role as a process, begun anew under the same name. What it says goes to a file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = list(command)
        self.log = folder / f"{name}.log"
        self.starts = 0
        self.asked_to_end = False  # killed or terminated by us
        self.paused = False
        self._started_at = 0.0
        self._folder = folder
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the latest start."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether there is a process, paused or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def age(self) -> float:
        """Seconds since the latest start."""
        return time.monotonic() - self._started_at

    @property
    def status(self) -> int | None:
        """How the latest process ended; None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Begin; ends with this process, whatever becomes of it."""
        assert not self.running, f"{self.name} runs already"
        self.starts += 1
        self._started_at = time.monotonic()
        self.asked_to_end = self.paused = False
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call
            )

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def terminate(self) -> None:
        """Ask it to drain; returns before it has ended."""
        self._end(signal.SIGTERM)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end; return its status."""
        assert self._process is not None
        return self._process.wait(seconds)

    def pause(self) -> None:
        """Freeze it: its connections stay open, and nothing answers."""
        self._send(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)
        self.paused = False

    def text(self) -> str:
        """All that it has said."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _end(self, number: signal.Signals) -> None:
        if self.running:
            self.asked_to_end = True
            self._send(number)

    def _send(self, number: signal.Signals) -> None:
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass
class Deployment:
    """Processes of every role on one store and one bus. Ends all of them with its block."""

    folder: Path
    store: str
    bus: str = "memory:"
    via: str | None = None  # workers talk over this broker instead of a connection
    environment: Mapping[str, str] = field(default_factory=dict)
    schedulers: list[RoleProcess] = field(default_factory=list)
    workers: list[RoleProcess] = field(default_factory=list)
    notifiers: list[RoleProcess] = field(default_factory=list)
    apis: list[RoleProcess] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)  # of the schedulers
    api_addresses: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self.processes:
            process.kill()

    @property
    def processes(self) -> list[RoleProcess]:
        """Every role, those that others depend on first."""
        return [*self.schedulers, *self.notifiers, *self.apis, *self.workers]

    def migrate(self) -> None:
        """Prepare the store."""
        self._run("migrate", "--store", self.store)

    def add_scheduler(self, *options: str) -> RoleProcess:
        """One more scheduler, on an address of its own that it keeps."""
        address = f"127.0.0.1:{free_port()}"
        name = f"scheduler-{len(self.schedulers) + 1}"
        arguments = ["scheduler", "--store", self.store, "--bus", self.bus, "--name", name]
        arguments += ["--listen", address, *PATIENTLY]
        arguments += ["--via", self.via] if self.via else []
        process = self._role(name, [*arguments, *options])
        self.addresses.append(address)
        self.schedulers.append(process)
        return process

    def add_worker(self, *options: str, first: int | None = None) -> RoleProcess:
        """One more worker; it tries the schedulers in turn, beginning with the one given."""
        number = len(self.workers)
        begin = (number if first is None else first) % max(1, len(self.addresses))
        name = f"worker-{number + 1}"
        arguments = ["worker", "--name", name]
        if self.via:
            arguments += ["--via", self.via]
        for address in (*self.addresses[begin:], *self.addresses[:begin]):
            arguments += [] if self.via else ["--connect", address]
        arguments += [*PATIENTLY, *options]
        process = self._role(name, arguments)
        self.workers.append(process)
        return process

    def add_notifier(self, *options: str) -> RoleProcess:
        """One more notifier; one of them leads."""
        name = f"notifier-{len(self.notifiers) + 1}"
        arguments = ["notifier", "--store", self.store, "--bus", self.bus, "--name", name]
        process = self._role(name, [*arguments, *PATIENTLY, *options])
        self.notifiers.append(process)
        return process

    def add_api(self, *options: str) -> RoleProcess:
        """One more api, on an address of its own that it keeps; for a single user."""
        address = f"127.0.0.1:{free_port()}"
        name = f"api-{len(self.apis) + 1}"
        arguments = ["api", "--store", self.store, "--bus", self.bus, "--name", name]
        arguments += ["--listen", address, "--auth", "single-user", *PATIENTLY]
        process = self._role(name, [*arguments, *options])
        self.api_addresses.append(address)
        self.apis.append(process)
        return process

    def until_listening(self, address: str) -> None:
        """Wait until something takes connections there."""
        host, _, port = address.partition(":")
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection((host, int(port)), 1):
                return
            time.sleep(0.02)
        raise RuntimeError(f"nobody listens on {address}: {self.logs()}")

    def start(self) -> None:
        """Begin every role that does not run."""
        for process in self.processes:
            if not process.running:
                process.start()

    def logs(self) -> dict[str, str]:
        """What every process has said, by name."""
        return {process.name: process.text() for process in self.processes}

    def _role(self, name: str, arguments: Sequence[str]) -> RoleProcess:
        return RoleProcess(name, [*PROGRAM, *arguments], self.folder, self.environment)

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=READY_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"tidemill {arguments[0]} ended with {done.returncode}: {done.stderr}"
            )
