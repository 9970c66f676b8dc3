"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "tidemill",
    "asyncpg",
    "confluent-kafka",
    "grpcio",
    "msgspec",
    "protobuf",
    "redis",
    "starlette",
    "uvicorn",
    "uvloop",
)


def describe_machine() -> dict[str, Any]:
    """Hardware, system and versions; nothing that names the machine or its owner."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "versions": _versions(),
    }


def describe_surroundings() -> dict[str, Any]:
    """What differs between two measurements on one machine: the code, and what else it does."""
    return {
        "revision": _revision(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    own = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return own | {name: version(name) for name in PACKAGES}


def _revision() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
