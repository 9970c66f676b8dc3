"""Memory of processes with all their children, as Linux tells it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KIBIBYTES_PER_MEBIBYTE = 1_024
LINE = re.compile(r"^(Rss|Pss):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Memory:
    """In MiB. Resident means PSS, in which those who share a page share its weight, unlike RSS."""

    resident: float
    rss: float
    processes: int


def memory_of(pids: Iterable[int]) -> Memory:
    """What these processes and their children hold together right now."""
    members = [member for pid in pids for member in _family(pid)]
    found = [sizes for member in members if (sizes := _sizes(member))]
    return Memory(
        resident=sum(one["Pss"] for one in found),
        rss=sum(one["Rss"] for one in found),
        processes=len(found),
    )


def _family(pid: int) -> list[int]:
    """The process and all below it."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for file in files for child in file.read_text().split()]
    return [pid, *(member for child in children for member in _family(child))]


def _sizes(pid: int) -> dict[str, float]:
    """Of a process that has just ended: nothing."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: int(size) / KIBIBYTES_PER_MEBIBYTE for name, size in LINE.findall(text)}
