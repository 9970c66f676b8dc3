"""The peers' own virtual environments: made when first used, from locks with hashes."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench-peers"
LOCKS = Path(__file__).with_name("requirements")
SAY_SECONDS = 2.0

Say = Callable[[str], None]


def environment_of(peer: str, say: Say) -> Path:
    """The Python that has a peer installed; installing it can take minutes, once per lock."""
    folder = ENVIRONMENTS / peer
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = _fingerprint(_lock(peer))
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    say(f"making {folder.relative_to(ROOT)}, once")
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    _install(python, _lock(peer), say)
    stamp.write_text(wanted)
    return python


def version_of(peer: str) -> str:
    """What the lock says is installed of the peer itself."""
    package = {"airflow": "apache-airflow"}.get(peer, peer)
    found = re.search(rf"^{package}==(\S+)", _lock(peer).read_text(), re.MULTILINE)
    assert found is not None, f"{_lock(peer)} does not name {package}"
    return found[1]


def _lock(peer: str) -> Path:
    return LOCKS / f"{peer}.txt"


def _fingerprint(lock: Path) -> str:
    return f"{sys.version.split()[0]} {hashlib.sha256(lock.read_bytes()).hexdigest()}"


def _install(python: Path, lock: Path, say: Say) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install"]
    total = len(re.findall(r"^\S+==", lock.read_text(), re.MULTILINE))
    lines = list[str]()
    said = time.monotonic()
    with subprocess.Popen(
        [*command, "--progress-bar", "off", "--require-hashes", "-r", str(lock)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            lines.append(line)
            if time.monotonic() > said + SAY_SECONDS:
                said = time.monotonic()
                found = sum(one.startswith("Collecting ") for one in lines)
                say(f"{found} of at most {total} packages found")
    if pip.returncode != 0:
        raise RuntimeError(f"pip could not install {lock.name}: {''.join(lines[-10:])}")
    say("installed")
