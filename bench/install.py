"""How much a plain install weighs."""

from __future__ import annotations

import re
import subprocess
import tempfile
import venv
from pathlib import Path

from bench.results import Sample
from bench.stage import Stage

ROOT = Path(__file__).resolve().parents[1]
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
INSTALL_SECONDS_MAX = 600
MEGABYTE = 1_000_000


def measure_install(stage: Stage) -> list[Sample]:
    """Megabytes of the packages without, then with those of the API; pip itself not counted."""
    stage.settings |= {"api_packages": API_PACKAGES}
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        plain, with_api = _install(stage, Path(name))
    return [Sample("install_mb", "MB", [plain]), Sample("install_with_api_mb", "MB", [with_api])]


def _install(stage: Stage, folder: Path) -> tuple[float, float]:
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
