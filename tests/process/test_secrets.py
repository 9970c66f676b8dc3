"""A secret in the environment of `tidemill run`: its task gets it, and nobody else sees it."""

from __future__ import annotations

from tests.process.commands import Shell, finish

CANARY = "c4n4ry-0123456789"
CODE = """
import os, pathlib, subprocess, sys
from tidemill.sdk.context import context

def leak(password):
    assert password == context().secret("db-password")
    print(password, file=sys.stderr)
    inherited = subprocess.run(["env"], capture_output=True).stdout
    places = [pathlib.Path(f"/proc/{pid}/environ") for pid in (os.getpid(), os.getppid())]
    seen = [path.read_bytes() for path in places if path.exists()]
    assert not any(password.encode() in one for one in (inherited, *seen))
    raise ValueError(password)
"""
FLOW = """
name: leaking
imports: [leak.py]
tasks:
  - id: leak
    executor: python
    params: {function: "leak:leak"}
    inputs: {password: {secret: db-password}}
    retry: {max_retries: 0}
"""


def test_a_canary_is_in_no_output_and_in_no_file(shell: Shell) -> None:
    shell.write("leak.py", CODE)
    shell.write("flow.yaml", FLOW)

    ended = finish(shell.start("run", "flow.yaml", TIDEMILL_SECRET_DB_PASSWORD=CANARY))
    shown = shell.run("show", "latest", "leak")
    files = [path for path in shell.folder.rglob("*") if path.is_file()]

    assert ended.code == 1
    assert "ValueError: ***" in shown.out
    assert CANARY not in ended.out + ended.err + shown.out + shown.err
    assert [path.name for path in files if CANARY.encode() in path.read_bytes()] == []


def test_a_missing_secret_is_told_with_the_places_where_it_was_looked_for(shell: Shell) -> None:
    shell.write("leak.py", CODE)
    shell.write("flow.yaml", FLOW)

    ended = shell.run("run", "flow.yaml")

    assert ended.code == 1
    assert "the variable TIDEMILL_SECRET_DB_PASSWORD" in ended.out + ended.err
