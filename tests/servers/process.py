"""One server as a child process: started, killed, paused and started again on the same data."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil

START_SECONDS = 60.0
STOP_SECONDS = 15.0
LEASH = Path(__file__).with_name("leash.py")
# Below the ports that clients are given: a port stays free while its server is down.
PORTS = range(20_000, 32_000)

Command = Sequence[str | Path]


class Server(ABC):
    """A server with its own folder; killing and starting it again keeps data and address."""

    stop_signal = signal.SIGTERM
    orphan_signal = signal.SIGKILL

    def __init__(self, name: str, *, user: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"tidemill-{name}-"))
        self.user = user
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: subprocess.Popen[bytes] | None = None
        self._prepared = False
        if user is not None:
            shutil.chown(self.folder, user)

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients find it; the same after each start."""

    @abstractmethod
    def _prepare(self) -> None:
        """Fill the empty folder."""

    @abstractmethod
    def _command(self) -> Command:
        """What to run."""

    @abstractmethod
    def _ready(self) -> bool:
        """Whether clients are served."""

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, f"{self._name} does not run"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether there is a process, paused or not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Run the server and wait until it serves; RuntimeError when it does not."""
        assert not self.running, f"{self._name} runs already"
        if not self._prepared:
            self._prepare()
            self._prepared = True
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, **_identity(self.user),
            )  # fmt: skip
        told = [str(self.pid), str(int(self.orphan_signal)), str(self.folder)]
        self._leash = subprocess.Popen(
            [sys.executable, "-IS", LEASH, *told], stdin=subprocess.PIPE, start_new_session=True
        )
        self._wait_until_ready()

    def kill(self) -> None:
        """End the server and its children at once, as a power cut would."""
        if not self.running:
            return self._forget()
        family = [psutil.Process(self.pid)]
        with suppress(psutil.NoSuchProcess):
            family += family[0].children(recursive=True)
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        _wait_until_dead(family[1:])
        return self._forget()

    def stop(self) -> None:
        """End the server in order; what takes too long is killed."""
        if self.running:
            assert self._process is not None
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(self.stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Kill the server and start it again on its data."""
        self.kill()
        self.start()

    def close(self) -> None:
        """Kill the server and delete its data; safe to call twice."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> Path:
        """What the server wrote."""
        return self.folder / "log"

    def _run(self, command: Command) -> None:
        """Run a program that prepares the folder."""
        with self.log.open("ab") as log:
            done = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                timeout=START_SECONDS, check=False, **_identity(self.user),
            )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {self._last_words()}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if not self.running:
                raise RuntimeError(f"{self._name} ended while starting: {self._last_words()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._name} is not ready after {START_SECONDS:.0f} s")
            time.sleep(0.05)

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2_000:] if self.log.exists() else ""

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None
        if self._leash is not None:
            self._leash.kill()
            assert self._leash.stdin is not None
            self._leash.stdin.close()
            self._leash.wait()
            self._leash = None


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, for this process alone."""
    first = os.getpid() * 37 % len(PORTS)
    for step in range(len(PORTS)):
        port = PORTS[(first + step) % len(PORTS)]
        if port not in _given and not _listened_on(port) and _reserve(port):
            return port
    raise RuntimeError("no port is free")


def _listened_on(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _reserve(port: int) -> bool:
    """Keep a port for this process until its end: tests run side by side."""
    folder = Path(tempfile.gettempdir()) / f"tidemill-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    reservation = os.open(folder / str(port), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(reservation, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(reservation)
        return False
    _given.add(port)
    return True


_given: set[int] = set()


def _wait_until_dead(family: Sequence[psutil.Process]) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while any(map(_alive, family)) and time.monotonic() < deadline:
        time.sleep(0.005)


def _alive(process: psutil.Process) -> bool:
    # Orphans wait as zombies until the system's first process looks after them.
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _identity(user: str | None) -> dict[str, Any]:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
