"""What a measurement leaves behind: rows, their spread, and the file that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import msgspec

StoreName: TypeAlias = Literal["sqlite", "postgresql"]
Settings: TypeAlias = dict[str, Any]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one workload; `value` is the median of the repeats."""

    workload: str
    store: StoreName
    bus: str
    metric: str
    value: float
    unit: str
    repeats: tuple[float, ...]
    settings: Settings

    @property
    def key(self) -> tuple[str, str, str, str]:
        """There is one row for each of these."""
        return self.workload, self.store, self.bus, self.metric

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest repeat."""
        return min(self.repeats), max(self.repeats)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one machine."""

    machine: dict[str, Any]
    results: tuple[Result, ...] = ()

    def merged(self, fresh: Iterable[Result]) -> Report:
        """With new rows in the place of old ones of the same key."""
        rows = {row.key: row for row in (*self.results, *fresh)}
        return Report(machine=self.machine, results=tuple(rows.values()))


class Sample(msgspec.Struct, frozen=True):
    """A metric as a workload sees it: the runner adds where it was measured."""

    metric: str
    unit: str
    repeats: Sequence[float]


def summarise(
    workload: str, store: StoreName, samples: Iterable[Sample], settings: Settings
) -> list[Result]:
    """The rows of one workload on one store."""
    return [
        Result(
            workload=workload,
            store=store,
            bus="none",
            metric=sample.metric,
            value=_shortened(median(sample.repeats)),
            unit=sample.unit,
            repeats=tuple(_shortened(value) for value in sample.repeats),
            settings=settings,
        )
        for sample in samples
    ]


def load_report(path: Path, machine: dict[str, Any]) -> Report:
    """What the file holds from earlier on this machine; nothing when it was another one."""
    if not path.exists():
        return Report(machine=machine)
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    if report.machine != machine:
        return Report(machine=machine)
    return report


def save_report(path: Path, report: Report) -> None:
    """Write the file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def _shortened(value: float) -> float:
    return float(f"{value:.5g}")
