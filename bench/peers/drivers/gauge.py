"""What every driver needs: its order, worker processes, waits, weights, and the way to answer.

Drivers run in the peers' own environments, so this file imports the standard library alone.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LOOK_SECONDS = 0.005
WAIT_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 15.0


@dataclass(frozen=True)
class Order:
    """What the harness asks for; `variant` is what it calls the server, and empty by default."""

    url: str
    folder: Path
    quick: bool
    repeats: int
    variant: str = ""

    def size(self, full: int, quick: int) -> int:
        """How many there shall be of something."""
        return quick if self.quick else full


def read_order() -> Order:
    """The only argument of a driver is JSON."""
    told = json.loads(sys.argv[1])
    return Order(**told | {"folder": Path(told["folder"])})


@dataclass
class Figures:
    """Collects repeats, tells progress, and answers at the end."""

    order: Order
    samples: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, metric: str, unit: str, value: float, **settings: Any) -> None:
        """One repeat of one metric; `name` is a workload, or a workload and its variant."""
        workload, _, variant = name.partition("-")
        variant = "-".join(filter(None, (variant, self.order.variant)))
        sample = self.samples.setdefault(
            (workload, variant, metric),
            {"workload": workload, "variant": variant, "metric": metric, "unit": unit}
            | {"repeats": [], "settings": settings},
        )
        sample["repeats"].append(value)
        _tell({"say": f"{name}: {value:,.4g} {metric}"})

    def add_rate(self, name: str, tasks: int, seconds: float, **settings: Any) -> None:
        """Throughput, end to end."""
        self.add(name, "tasks_per_second", "1/s", tasks / seconds, tasks=tasks, **settings)

    def add_hops(self, name: str, chains: Sequence[Sequence[float]], **settings: Any) -> None:
        """Times between the beginnings of tasks that follow each other, of several chains."""
        hops = [(late - early) * 1_000 for chain in chains for early, late in pairwise(chain)]
        told = {"chains": len(chains), "tasks": len(chains[0])} | settings
        self.add(name, "hop_p50_ms", "ms", percentile(hops, 50), **told)
        self.add(name, "hop_p99_ms", "ms", percentile(hops, 99), **told)

    def add_weight(self, pids: Iterable[int]) -> None:
        """Memory of processes and their children, as often as there are repeats."""
        pids = set(pids)
        for _ in range(self.order.repeats):
            mebibytes, count = resident_mib(pids)
            self.add("footprint", "resident_mib_idle", "MiB", mebibytes, processes=count)

    def answer(self) -> None:
        """The last line: everything that was measured."""
        _tell({"samples": list(self.samples.values())})


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so many percent of the values do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]


@contextmanager
def running(
    commands: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of the peer, which end with the block; what they say goes to the log."""
    processes = list[subprocess.Popen[bytes]]()
    with (folder / "log").open("ab") as log:
        try:
            processes += [
                subprocess.Popen(
                    [sys.executable, *command],
                    cwd=HERE,
                    env=os.environ | dict(environment or {}),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                for command in commands
            ]
            yield processes
        finally:
            _end(processes)


def wait_until(
    check: Callable[[], bool],
    look_seconds: float = LOOK_SECONDS,
    processes: Sequence[subprocess.Popen[bytes]] = (),
) -> None:
    """Ask again and again; TimeoutError after some minutes, RuntimeError when a process ends."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not check():
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("a process of the peer has ended")
        if time.monotonic() > deadline:
            raise TimeoutError("the peer has not done what it was asked to")
        time.sleep(look_seconds)


def resident_mib(pids: Set[int]) -> tuple[float, int]:
    """What processes and their descendants occupy, shared pages by their share, and how many."""
    parents = _parents()
    family = set(pids)
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(map(_proportional_kib, family)) / 1_024, len(family)


def _parents() -> dict[int, int]:
    found = dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name is in brackets and may hold anything, brackets too.
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return found


def _proportional_kib(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tell(message: Mapping[str, Any]) -> None:
    print(json.dumps(message), flush=True)
