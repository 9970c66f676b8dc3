"""`footprint`: how long it takes to begin, and how much a plain install weighs."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from bench.results import Sample
from bench.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
# The HTTP API, identity and telemetry belong to the plain install, and must fit into it.
API_PACKAGES = (
    "starlette",
    "uvicorn",
    "httptools",
    "argon2-cffi",
    "PyJWT",
    "prometheus-client",
    "structlog",
)
STARTS = 10
INSTALL_SECONDS_MAX = 600
MEGABYTE = 1_000_000


async def measure_footprint(stage: Stage) -> list[Sample]:
    """Milliseconds to import and to print the help, megabytes on disk."""
    empty = _milliseconds(stage, [sys.executable, "-c", "pass"])
    imported = _milliseconds(stage, [sys.executable, "-c", "import tidemill"])
    stage.say(f"{min(imported):.0f} ms to import, of which Python itself {min(empty):.0f} ms")
    helped = _milliseconds(stage, [str(Path(sys.executable).with_name("tidemill")), "--help"])
    stage.say(f"{min(helped):.0f} ms for the help")
    stage.settings |= {"python_itself_ms": round(min(empty), 1), "api_packages": API_PACKAGES}
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
        plain, with_api = _install(stage, Path(folder))
    return [
        Sample("import_ms", "ms", imported),
        Sample("help_ms", "ms", helped),
        Sample("install_mb", "MB", [plain]),
        Sample("install_with_api_mb", "MB", [with_api]),
    ]


def _milliseconds(stage: Stage, command: list[str]) -> list[float]:
    taken = list[float]()
    for _ in range(max(stage.repeats, STARTS)):
        begin = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        taken.append((time.perf_counter() - begin) * 1_000)
    return taken


def _install(stage: Stage, folder: Path) -> tuple[float, float]:
    """The weight of the packages without, then with those of the API; pip itself not counted."""
    stage.say("installing into an empty environment")
    venv.create(folder / "env", with_pip=True)
    empty = _megabytes(folder)
    pins = folder / "pins.txt"
    pins.write_text("\n".join(_locked_packages()))
    _pip(folder, "--constraint", str(pins), str(ROOT))
    plain = _megabytes(folder) - empty
    stage.say(f"{plain:.1f} MB")
    _pip(folder, "--constraint", str(pins), *API_PACKAGES)
    with_api = _megabytes(folder) - empty
    stage.say(f"{with_api:.1f} MB with the packages of the API")
    return plain, with_api


def _pip(folder: Path, *arguments: str) -> None:
    python = str(folder / "env" / "bin" / "python")
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*command, *arguments], check=True, timeout=INSTALL_SECONDS_MAX)


def _locked_packages() -> list[str]:
    """What `requirements/run.txt` pins, without the hashes."""
    text = (ROOT / "requirements" / "run.txt").read_text()
    return re.findall(r"^[A-Za-z0-9._-]+==[^ ]+", text, re.MULTILINE)


def _megabytes(folder: Path) -> float:
    packages = folder / "env" / "lib"
    return sum(path.lstat().st_size for path in packages.rglob("*") if path.is_file()) / MEGABYTE
