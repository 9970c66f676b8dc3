"""Logging in from the command line, against a server that asks who comes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib

import pytest

from tests.process.commands import Shell, eventually, finish
from tidemill.client import BlockingClient

EMAIL, PASSWORD = "ada@example.com", "a long tide comes in"
LOGIN = ("login", "--email", EMAIL, "--password-stdin")


@pytest.fixture
def server(shell: Shell) -> str:
    """The address of a server with one administrator."""
    process = shell.start("up", "--auth", "identity", "--workers", "0")
    assert process.stderr is not None
    seen: list[str] = []

    def address() -> str | None:
        seen.append(process.stderr.readline() if process.stderr else "")
        found = re.search(r"http +(http://\S+)", seen[-1])
        return found.group(1) if found else None

    url = eventually(address)
    token = re.search(r"tmb_\w+", "".join(seen))
    assert token is not None
    with BlockingClient(url) as client:
        client.bootstrap(token.group(0), EMAIL, PASSWORD)
    return url


def _login(shell: Shell, server: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "tidemill.cli", *LOGIN, "--server", server],
        input=f"{PASSWORD}\n",
        env={**os.environ, "XDG_CONFIG_HOME": str(shell.folder)},
        cwd=shell.folder,
        text=True,
        check=False,
        capture_output=True,
    ).returncode


def test_a_login_is_kept_renewed_by_one_command_at_a_time_and_ended(
    shell: Shell, server: str
) -> None:
    assert shell.run("runs", "--server", server).code == 2
    assert _login(shell, server) == 0
    file = shell.folder / "tidemill" / "contexts.toml"
    file.write_text(re.sub(r"access_token = .*", 'access_token = "old"', file.read_text()))

    both = [shell.start("whoami", "--context", "127.0.0.1") for _ in range(2)]

    assert [finish(one).code for one in both] == [0, 0]
    assert shell.run("runs", "--server", server).code == 0
    assert shell.run("logout").code == 0
    [left] = tomllib.loads(file.read_text())["contexts"].values()
    assert set(left) == {"server"}
    assert "tidemill login" in shell.run("runs").err
