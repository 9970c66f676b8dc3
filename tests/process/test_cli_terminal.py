"""`tidemill run` in a real terminal: the tree, and Ctrl-C as the keyboard sends it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.process.commands import WAIT_SECONDS_MAX, Shell, eventually

# A new session takes its standard input as its terminal, as a login does.
IN_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "tidemill.cli", *sys.argv[1:]])
"""

FLOW = """
name: terminal
imports: [steps.py]
tasks:
  - {id: wait, executor: python, params: {function: "steps:wait"}}
  - {id: after, executor: noop, depends_on: [wait]}
"""

STEPS = """
import time
from pathlib import Path
from tidemill import context

def wait():
    context().progress(0.5, "half")
    Path("waiting").touch()
    while not Path("open").exists():
        time.sleep(0.01)
"""


@dataclass
class Terminal:
    """The keyboard and the screen of a command."""

    process: subprocess.Popen[bytes]
    keyboard: int
    screen: str = ""

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.keyboard, keys)

    def read(self) -> str:
        """All that was drawn so far."""
        with contextlib.suppress(OSError):  # nothing new, or the other side is closed
            self.screen += os.read(self.keyboard, 65_536).decode("utf-8", "replace")
        return self.screen

    def finish(self) -> int:
        """Read to the end; return the exit code."""
        eventually(lambda: (self.read(), self.process.poll() is not None)[1])
        self.read()
        return self.process.wait(WAIT_SECONDS_MAX)


@pytest.fixture
def terminal(shell: Shell) -> Iterator[Terminal]:
    """A terminal in which a run waits for a file called `open`."""
    shell.write("flow.yaml", FLOW)
    shell.write("steps.py", STEPS)
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, "run", "flow.yaml"],
        cwd=shell.folder,
        env={**os.environ, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    terminal = Terminal(process, ours)
    eventually(lambda: (terminal.read(), (shell.folder / "waiting").exists())[1])
    yield terminal
    process.kill()
    process.wait()
    os.close(ours)


def test_a_terminal_shows_a_tree_with_progress(shell: Shell, terminal: Terminal) -> None:
    eventually(lambda: "50% half" in terminal.read())
    (shell.folder / "open").touch()

    assert terminal.finish() == 0
    assert "✓" in terminal.screen
    assert "terminal" in terminal.screen
    assert "SUCCEEDED" in terminal.screen


def test_ctrl_c_reaches_the_owner_and_not_the_workers(shell: Shell, terminal: Terminal) -> None:
    terminal.type(b"\x03")
    eventually(lambda: "Ctrl-C again stops at once" in terminal.read())
    (shell.folder / "open").touch()

    assert terminal.finish() == 130
    waited = shell.read_json("show", "latest", "wait")["task"]
    assert (waited["state"], waited["losses"]) == ("SUCCEEDED", 0)
