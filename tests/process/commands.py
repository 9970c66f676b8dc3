"""Runs `tidemill` as people do: as a process, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec

T = TypeVar("T")
WAIT_SECONDS_MAX = 30.0
FREE_PORT = {"TIDEMILL_LISTEN": "127.0.0.1:0"}  # so that tests do not meet on the default one


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


@dataclass
class Shell:
    """A folder with workflows in it, and commands that run there."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def write(self, name: str, text: str) -> None:
        """Put a file into the folder."""
        (self.folder / name).write_text(text)

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        """Begin a command."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tidemill.cli", *arguments],
            cwd=self.folder,
            env={**os.environ, **self._own_environ(), **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def _own_environ(self) -> dict[str, str]:
        """No contexts of whoever runs the tests, and no port that two tests could meet on."""
        return {"PYTHONUNBUFFERED": "1", "XDG_CONFIG_HOME": str(self.folder), **FREE_PORT}

    def run(self, *arguments: str) -> Ended:
        """Run a command to its end."""
        return finish(self.start(*arguments))

    def read_json(self, *arguments: str) -> Any:
        """What a command says with --json."""
        ended = self.run(*arguments, "--json")
        assert ended.code == 0, ended.err
        return msgspec.json.decode(ended.out)

    def lines(self, name: str) -> list[str]:
        """The lines of a file that tasks append to; none while it is not there."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def close(self) -> None:
        """End what is left."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            finish(process)


def finish(process: subprocess.Popen[str], seconds: float = WAIT_SECONDS_MAX) -> Ended:
    """Wait for a command to end; what it printed can be read once."""
    if process.stdout is not None and process.stdout.closed:
        return Ended(process.wait(), "", "")
    out, err = process.communicate(timeout=seconds)
    return Ended(process.returncode, out, err)


def is_ready(endpoint: str) -> bool:
    """Whether the role whose health is there is ready, without a process that asks."""
    try:
        return httpx.get(f"http://{endpoint}/ready", timeout=5).is_success
    except httpx.TransportError:
        return False


def eventually(look: Callable[[], T | None], seconds: float = WAIT_SECONDS_MAX) -> T:
    """What `look` sees as soon as it sees something: processes offer no signal to await."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if seen := look():
            return seen
        time.sleep(0.02)
    raise AssertionError(f"nothing was seen within {seconds:g} s")
