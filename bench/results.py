"""What a measurement leaves behind: rows, their spread, and the file that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import msgspec

StoreName: TypeAlias = Literal["sqlite", "postgresql"]
BusName: TypeAlias = Literal["none", "kafka", "redis"]
PeerStoreName: TypeAlias = Literal["sqlite", "postgresql", "redis"]
Settings: TypeAlias = dict[str, Any]

HARDWARE = ("processor", "cores", "memory_gib", "system")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one workload; `value` is the median of the repeats."""

    workload: str
    store: PeerStoreName
    bus: BusName
    metric: str
    value: float
    unit: str
    repeats: tuple[float, ...]
    settings: Settings

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest repeat."""
        return min(self.repeats), max(self.repeats)


class Result(Row, frozen=True, kw_only=True):
    """A figure of Tidemill."""

    store: StoreName

    @property
    def key(self) -> tuple[str, ...]:
        """There is one row for each of these."""
        return self.workload, self.store, self.bus, self.metric


class PeerResult(Row, frozen=True, kw_only=True):
    """A figure of another program, on the same machine."""

    peer: str
    store: PeerStoreName

    @property
    def key(self) -> tuple[str, ...]:
        """There is one row for each of these."""
        return self.peer, self.workload, self.store, self.bus, self.metric


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one machine."""

    machine: dict[str, Any]
    results: tuple[Result, ...] = ()
    peers: tuple[PeerResult, ...] = ()

    def merged(self, fresh: Iterable[Result] = (), peers: Iterable[PeerResult] = ()) -> Report:
        """With new rows in the place of old ones of the same key."""
        results = {row.key: row for row in (*self.results, *fresh)}
        others = {row.key: row for row in (*self.peers, *peers)}
        return Report(
            machine=self.machine, results=tuple(results.values()), peers=tuple(others.values())
        )


class Sample(msgspec.Struct, frozen=True):
    """A metric as a workload sees it: the runner adds where it was measured.

    A variant becomes part of the workload's name: `jobs` and `bulk` make `jobs-bulk`. A peer, which
    is measured in one go, names the workload that the metric compares to.
    """

    metric: str
    unit: str
    repeats: Sequence[float]
    variant: str = ""
    workload: str = ""
    settings: Settings = {}  # of this row alone


def joined(rounds: Sequence[Iterable[Sample]]) -> list[Sample]:
    """Each metric with its repeats of all rounds, and the settings that the last one had."""
    samples = dict[tuple[str, str], Sample]()
    for one in (sample for samples_of_round in rounds for sample in samples_of_round):
        key = one.metric, one.variant
        before = samples[key].repeats if key in samples else ()
        samples[key] = msgspec.structs.replace(one, repeats=(*before, *one.repeats))
    return list(samples.values())


def summarise(
    workload: str,
    store: StoreName,
    samples: Iterable[Sample],
    settings: Settings,
    bus: BusName = "none",
) -> list[Result]:
    """The rows of one workload on one store and bus."""
    return [
        Result(workload=_named(workload, one), store=store, bus=bus, **_figures(one, settings))
        for one in samples
    ]


def summarise_peer(
    peer: str, store: PeerStoreName, samples: Iterable[Sample], settings: Settings
) -> list[PeerResult]:
    """The rows of one peer."""
    return [
        PeerResult(
            peer=peer,
            workload=_named("jobs", one),
            store=store,
            bus="none",
            **_figures(one, settings),
        )
        for one in samples
    ]


def load_report(path: Path, machine: dict[str, Any]) -> Report:
    """What the file holds from earlier on this machine; nothing when it was another one."""
    report = read_report(path)
    if report is None or not same_machine(report.machine, machine):
        return Report(machine=machine)
    return Report(machine=machine, results=report.results, peers=report.peers)


def same_machine(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether figures compare; versions may differ, each row has its own."""
    return all(one.get(name) == other.get(name) for name in HARDWARE)


def read_report(path: Path) -> Report | None:
    """What the file holds, of whatever machine."""
    if not path.exists():
        return None
    return msgspec.json.decode(path.read_bytes(), type=Report)


def save_report(path: Path, report: Report) -> None:
    """Write the file whole, or leave the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    unfinished.replace(path)


def _named(workload: str, sample: Sample) -> str:
    name = sample.workload or workload
    return f"{name}-{sample.variant}" if sample.variant else name


def _figures(sample: Sample, settings: Settings) -> dict[str, Any]:
    return {
        "metric": sample.metric,
        "value": _shortened(median(sample.repeats)),
        "unit": sample.unit,
        "repeats": tuple(_shortened(value) for value in sample.repeats),
        "settings": settings | sample.settings,
    }


def _shortened(value: float) -> float:
    return float(f"{value:.5g}")
